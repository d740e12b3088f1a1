// A real OpenID provider for tests: dex's own server, with its memory storage, one client, static passwords and an LDAP
// connector, as a JSON file describes them. Not here: dex's other storages, whose clients no longer compile.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

type password struct {
	Email, Hash, Username, UserID string
}

type connector struct {
	Type, ID, Name string
	Config         json.RawMessage
}

type config struct {
	Issuer, Listen, Web string
	TokenSeconds        int
	SkipApproval        bool
	ClientID, Secret    string
	RedirectURIs        []string
	Passwords           []password
	Connectors          []connector
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: dex CONFIG.json")
	}
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var wanted config
	check(json.Unmarshal(text, &wanted))

	logger := logrus.New()
	store := memory.New(logger)
	client := storage.Client{
		ID: wanted.ClientID, Secret: wanted.Secret, RedirectURIs: wanted.RedirectURIs, Name: "Yardmaster",
	}
	var passwords []storage.Password
	for _, one := range wanted.Passwords {
		passwords = append(passwords, storage.Password{
			Email: one.Email, Hash: []byte(one.Hash), Username: one.Username, UserID: one.UserID,
		})
	}
	var connectors []storage.Connector
	if len(passwords) > 0 {
		connectors = append(connectors, storage.Connector{ID: server.LocalConnector, Type: server.LocalConnector, Name: "Email"})
	}
	for _, one := range wanted.Connectors {
		connectors = append(connectors, storage.Connector{ID: one.ID, Type: one.Type, Name: one.Name, Config: one.Config})
	}
	kept := storage.WithStaticClients(store, []storage.Client{client})
	kept = storage.WithStaticPasswords(kept, passwords, logger)
	kept = storage.WithStaticConnectors(kept, connectors)

	handler, err := server.NewServer(context.Background(), server.Config{
		Issuer: wanted.Issuer, Storage: kept, SkipApprovalScreen: wanted.SkipApproval,
		SupportedResponseTypes: []string{"code"}, Logger: logger, Web: server.WebConfig{Dir: wanted.Web},
		PrometheusRegistry: prometheus.NewRegistry(),
		IDTokensValidFor:   time.Duration(wanted.TokenSeconds) * time.Second,
	})
	check(err)
	fmt.Println("dex: listening on", wanted.Listen)
	log.Fatal(http.ListenAndServe(wanted.Listen, handler))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
