import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.ignite.Ignite;
import org.apache.ignite.Ignition;
import org.apache.ignite.cache.CacheAtomicityMode;
import org.apache.ignite.cache.CacheMode;
import org.apache.ignite.cache.affinity.rendezvous.RendezvousAffinityFunction;
import org.apache.ignite.cluster.ClusterState;
import org.apache.ignite.configuration.CacheConfiguration;
import org.apache.ignite.configuration.ClientConnectorConfiguration;
import org.apache.ignite.configuration.DataRegionConfiguration;
import org.apache.ignite.configuration.DataStorageConfiguration;
import org.apache.ignite.configuration.IgniteConfiguration;
import org.apache.ignite.configuration.WALMode;
import org.apache.ignite.spi.communication.tcp.TcpCommunicationSpi;
import org.apache.ignite.spi.discovery.tcp.TcpDiscoverySpi;
import org.apache.ignite.spi.discovery.tcp.ipfinder.vm.TcpDiscoveryVmIpFinder;
import org.apache.ignite.ssl.SslContextFactory;

/**
 * One node of Apache Ignite on the loopback address, told by system properties (`yardmaster.…`). It writes the file
 * `ready` into its folder once it can be used, and runs until it is ended.
 *
 * Caches whose names begin with `few-` have 8 partitions with a backup each, those with `one-` have 8 without; those
 * with `all-` are on every node.
 */
public final class Node {
    private static final String HOST = System.getProperty("yardmaster.address", "127.0.0.1");
    private static final String CLIENTS_HOST = System.getProperty("yardmaster.client-address", HOST);

    private Node() {
    }

    public static void main(String[] none) {
        try {
            run(Path.of(said("folder")));
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1); // Ignite's threads would keep a node that nothing can use
        }
    }

    private static void run(Path folder) throws Exception {
        Ignite ignite = Ignition.start(configuration(folder));
        int expected = Integer.getInteger("yardmaster.nodes", 1);
        while (ignite.cluster().forServers().nodes().size() < expected) {
            Thread.sleep(50);
        }
        if (isSecure() && ignite.cluster().localNode().order() == 1
            && ignite.cluster().state() != ClusterState.ACTIVE) {
            ignite.cluster().state(ClusterState.ACTIVE);
            ignite.cluster().baselineAutoAdjustEnabled(true);
            ignite.cluster().baselineAutoAdjustTimeout(0);
        }
        while (ignite.cluster().state() != ClusterState.ACTIVE) {
            Thread.sleep(50);
        }
        Files.writeString(folder.resolve("ready"), ignite.cluster().localNode().id() + "\n");
        new CountDownLatch(1).await();
    }

    private static IgniteConfiguration configuration(Path folder) {
        List<String> discovery = Arrays.asList(said("discovery").split(","));
        IgniteConfiguration made = new IgniteConfiguration()
            .setIgniteInstanceName("node-" + said("number"))
            .setConsistentId("node-" + said("number"))
            .setWorkDirectory(folder.toString())
            .setLocalHost(HOST)
            .setConnectorConfiguration(null)
            .setMetricsLogFrequency(0)
            .setFailureDetectionTimeout(5000)
            .setDiscoverySpi(new TcpDiscoverySpi()
                .setLocalPort(port("discovery-port"))
                .setLocalPortRange(0)
                .setIpFinder(new TcpDiscoveryVmIpFinder().setAddresses(discovery)))
            .setCommunicationSpi(new TcpCommunicationSpi()
                .setLocalPort(port("communication-port"))
                .setLocalPortRange(0))
            .setClientConnectorConfiguration(thinClients())
            .setCacheConfiguration(
                template("few-*", CacheMode.PARTITIONED, 1),
                template("one-*", CacheMode.PARTITIONED, 0),
                template("all-*", CacheMode.REPLICATED, 0))
            .setDataStorageConfiguration(storage());
        return made.setAuthenticationEnabled(isSecure());
    }

    private static ClientConnectorConfiguration thinClients() {
        ClientConnectorConfiguration made = new ClientConnectorConfiguration()
            .setHost(CLIENTS_HOST)
            .setPort(port("client-port"))
            .setPortRange(0)
            .setThreadPoolSize(8);
        if (!isSecure()) {
            return made;
        }
        Path keys = Path.of(said("keys"));
        SslContextFactory factory = new SslContextFactory();
        factory.setKeyStoreType("PKCS12");
        factory.setKeyStoreFilePath(keys.resolve("server.p12").toString());
        factory.setKeyStorePassword(said("keys-password").toCharArray());
        factory.setTrustStoreType("PKCS12");
        factory.setTrustStoreFilePath(keys.resolve("trusted.p12").toString());
        factory.setTrustStorePassword(said("keys-password").toCharArray());
        return made.setSslEnabled(true)
            .setUseIgniteSslContextFactory(false)
            .setSslClientAuth(true)
            .setSslContextFactory(factory);
    }

    /** Users need a disk to be kept on, so where there is a password the data lies there, too. */
    private static DataStorageConfiguration storage() {
        long most = Long.getLong("yardmaster.data-mb", 512) << 20;
        return new DataStorageConfiguration()
            .setWalMode(WALMode.LOG_ONLY)
            .setWalSegmentSize(16 << 20)
            .setMaxWalArchiveSize(256L << 20)
            .setDefaultDataRegionConfiguration(new DataRegionConfiguration()
                .setName("default")
                .setInitialSize(64L << 20)
                .setMaxSize(most)
                .setPersistenceEnabled(isSecure()));
    }

    private static CacheConfiguration<Object, Object> template(String name, CacheMode mode, int copies) {
        return new CacheConfiguration<>(name)
            .setCacheMode(mode)
            .setBackups(copies)
            .setAtomicityMode(CacheAtomicityMode.ATOMIC)
            .setAffinity(new RendezvousAffinityFunction(false, 8));
    }

    private static boolean isSecure() {
        return System.getProperty("yardmaster.keys") != null;
    }

    private static int port(String name) {
        return Integer.parseInt(said(name));
    }

    private static String said(String name) {
        String value = System.getProperty("yardmaster." + name);
        if (value == null) {
            throw new IllegalArgumentException("the property yardmaster." + name + " is missing");
        }
        return value;
    }
}
