"""What `make up` does about a cluster that it finds."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace

import pytest

from portal.cluster import choice
from portal.cluster.choice import Chosen, Course, Situation
from portal.cluster.found import Target, kubeconfig_of, target_of
from portal.cluster.offer import Offer, OfferFailed

TARGET = Target("/etc/kubeconfig", "here", "https://10.0.0.2:6443")
OTHER = replace(TARGET, context="production", server="https://198.51.100.7")
CHOSEN = Chosen(TARGET, "tasks:1", "10.0.0.1")
PLAIN = Situation(TARGET, is_wanted=False, is_set=False, has_terminal=True, addresses=("127.0.0.1", "10.0.0.1"))


class TestCourse:
    def test_a_person_at_a_terminal_is_asked(self):
        assert choice.course_of(PLAIN) is Course.ASK

    def test_without_a_terminal_the_cluster_is_mentioned_and_left_alone(self):
        assert choice.course_of(replace(PLAIN, has_terminal=False)) is Course.MENTION

    def test_the_command_is_consent(self):
        assert choice.course_of(replace(PLAIN, has_terminal=False, is_wanted=True)) is Course.GO_AHEAD

    def test_the_operator_s_own_settings_are_not_added_to(self):
        assert choice.course_of(replace(PLAIN, is_set=True)) is Course.NOTHING
        assert choice.course_of(replace(PLAIN, is_set=True, remembered=CHOSEN)) is Course.NOTHING

    def test_no_kubeconfig_is_no_matter_unless_the_engine_was_asked_for(self):
        assert choice.course_of(replace(PLAIN, target=None)) is Course.NOTHING
        assert choice.course_of(replace(PLAIN, target=None, is_wanted=True)) is Course.GO_AHEAD

    def test_a_refusal_holds_for_the_cluster_it_was_said_of(self):
        assert choice.course_of(replace(PLAIN, declined=TARGET)) is Course.MENTION
        assert choice.course_of(replace(PLAIN, declined=OTHER)) is Course.ASK

    def test_what_was_chosen_holds_without_a_question(self):
        assert choice.course_of(replace(PLAIN, remembered=CHOSEN)) is Course.AS_BEFORE
        assert choice.course_of(replace(PLAIN, remembered=CHOSEN, has_terminal=False)) is Course.AS_BEFORE

    @pytest.mark.parametrize(
        "change",
        [{"addresses": ("127.0.0.1",)}, {"image": "tasks:2"}, {"host": "10.0.0.9"}],
        ids=["an address that is gone", "another image", "another host"],
    )
    def test_it_is_found_anew_where_something_changed_and_consent_stays(self, change):
        assert choice.course_of(replace(PLAIN, remembered=CHOSEN, has_terminal=False, **change)) is Course.GO_AHEAD

    def test_consent_for_one_cluster_is_none_for_another(self):
        assert choice.course_of(replace(PLAIN, target=OTHER, remembered=CHOSEN)) is Course.ASK


class TestCandidates:
    def test_the_address_towards_the_cluster_comes_first(self):
        found = choice.candidates("10.245.0.1", ["127.0.0.1", "192.168.1.7", "10.245.0.1", "fd00::7"])
        assert found == ["10.245.0.1", "192.168.1.7", "fd00::7"]

    @pytest.mark.parametrize("address", ["127.0.0.1", "::1", "fe80::1", "169.254.3.4", "8.8.8.8", "2606:4700::1", "no"])
    def test_none_is_of_the_machine_alone_or_of_the_internet(self, address: str):
        assert choice.candidates(address, [address]) == []

    def test_an_address_that_the_operator_names_is_the_only_one(self):
        assert choice.candidates("10.0.0.1", ["10.0.0.1"], "8.8.8.8") == ["8.8.8.8"]
        assert choice.candidates("10.0.0.1", ["10.0.0.1"], "127.0.0.1") == []
        assert choice.candidates("10.0.0.1", ["10.0.0.1"], "0.0.0.0") == ["10.0.0.1"]

    def test_they_are_few(self):
        assert len(choice.candidates("", [f"10.0.0.{n}" for n in range(1, 200)])) == choice.MOST_CANDIDATES


class TestChoice:
    def test_the_first_that_a_pod_reached(self):
        outcomes = {"10.0.0.1": "A pod did not reach it: timed out.", "10.0.0.2": "", "10.0.0.3": ""}
        assert choice.chosen_host(["10.0.0.1", "10.0.0.2", "10.0.0.3"], outcomes) == "10.0.0.2"
        assert choice.chosen_host(["10.0.0.1", "10.0.0.9"], outcomes) == ""

    def test_where_none_will_do_each_is_named_with_its_trouble_and_the_remedy(self):
        words = choice.why_none(["10.0.0.1", "10.0.0.9"], {"10.0.0.1": "A pod did not reach it: timed out."})
        assert "10.0.0.1: A pod did not reach it: timed out." in words
        assert "10.0.0.9: nothing is known" in words
        assert "YARDMASTER_HOST=" in words
        assert "YARDMASTER_HOST=" in choice.why_none([], {})

    def test_the_image_is_named_or_the_project_s_own(self):
        assert choice.image_of("mine:1", [choice.DEVELOPMENT_IMAGE]) == "mine:1"
        assert choice.image_of("", ["busybox:1", choice.DEVELOPMENT_IMAGE]) == choice.DEVELOPMENT_IMAGE
        assert choice.image_of("", ["busybox:1"]) == ""


class TestSettings:
    def test_the_context_is_pinned_and_the_host_is_let_in(self):
        told = choice.settings_of(CHOSEN, {}, 8080)
        assert told["YARDMASTER_KUBERNETES_CONTEXT"] == "here"
        assert told["YARDMASTER_TASK_URL"] == "http://10.0.0.1:8080"
        assert "10.0.0.1" in told["YARDMASTER_ALLOWED_HOSTS"].split(",")
        assert "127.0.0.1" in told["YARDMASTER_ALLOWED_HOSTS"].split(",")

    def test_notebooks_have_the_projects_own_image_where_a_node_has_it(self):
        own = choice.DEVELOPMENT_WORKBENCH
        assert [choice.image_of("", images, own) for images in ([own], ["tasks:1"])] == [own, ""]
        told = choice.settings_of(replace(CHOSEN, workbench_image=own), {}, 8080)
        assert told["YARDMASTER_KUBERNETES_WORKBENCH_IMAGE"] == own

    def test_the_operator_s_own_words_stand(self):
        own = {"YARDMASTER_DEFAULT_ENGINE": "local", "YARDMASTER_ALLOWED_HOSTS": "portal.example"}
        told = choice.settings_of(replace(CHOSEN, host="fd00::1"), own, 8080)
        assert "YARDMASTER_DEFAULT_ENGINE" not in told
        assert told["YARDMASTER_ALLOWED_HOSTS"] == "portal.example,[fd00::1]"
        assert told["YARDMASTER_TASK_URL"] == "http://[fd00::1]:8080"


class TestKubeconfig:
    KUBECONFIG = """
current-context: here
contexts: [{name: here, context: {cluster: a, user: u}}, {name: there, context: {cluster: b, user: u}}]
clusters: [{name: a, cluster: {server: "https://10.0.0.2:6443"}}, {name: b, cluster: {server: "https://b"}}]
"""

    def test_the_context_leads_to_the_server(self, tmp_path):
        file = tmp_path / "kubeconfig"
        file.write_text(self.KUBECONFIG)
        assert target_of(str(file)) == Target(str(file), "here", "https://10.0.0.2:6443")
        assert target_of(str(file), "there") == Target(str(file), "there", "https://b")
        assert target_of(str(file), "nowhere") is None

    @pytest.mark.parametrize("text", ["", "[1]", "{", "contexts: 7", "current-context: here", "clusters: [{name: a}]"])
    def test_a_file_that_leads_nowhere_is_none(self, tmp_path, text: str):
        file = tmp_path / "kubeconfig"
        file.write_text(text)
        assert target_of(str(file)) is None
        assert target_of(str(tmp_path / "absent")) is None

    def test_of_several_files_the_first_that_says_something_counts(self, tmp_path):
        first, second = tmp_path / "first", tmp_path / "second"
        first.write_text("current-context: there")
        second.write_text(self.KUBECONFIG)
        found = target_of(f"{first}:{second}")
        assert found is not None
        assert found.server == "https://b"

    def test_the_portal_s_own_setting_comes_first_and_the_usual_file_last(self, tmp_path):
        assert kubeconfig_of({"YARDMASTER_KUBECONFIG": "a", "KUBECONFIG": "b"}, tmp_path) == "a"
        assert kubeconfig_of({"KUBECONFIG": "b"}, tmp_path) == "b"
        assert kubeconfig_of({}, tmp_path) == ""
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube" / "config").write_text("")
        assert kubeconfig_of({}, tmp_path) == str(tmp_path / ".kube" / "config")


def test_where_the_process_that_tries_fails_its_last_words_are_told(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(TestKubeconfig.KUBECONFIG)
    told = {"YARDMASTER_KUBECONFIG": str(file)}
    nothing_there = Offer(
        tmp_path, tmp_path, told, "", 8080, is_wanted=True, say=lambda _: None, stop=threading.Event()
    )
    with pytest.raises(OfferFailed, match=r"^The cluster could not be tried: .*No module named '?portal[^\]]*$"):
        nothing_there.settle()


@pytest.mark.parametrize(
    ("images", "own", "found", "says"),
    [
        ([choice.DEVELOPMENT_WORKBENCH], "", choice.DEVELOPMENT_WORKBENCH, False),
        (["tasks:1"], "", "", True),
        (["tasks:1"], "notebooks:1", None, False),
        (None, "", "", False),
    ],
    ids=["found", "not there", "named by the operator", "no answer"],
)
def test_a_choice_of_before_without_an_image_of_notebooks_gets_one_or_says_what_to_do(
    tmp_path, monkeypatch, images, own, found, says
):
    file = tmp_path / "kubeconfig"
    file.write_text(TestKubeconfig.KUBECONFIG)
    target = target_of(str(file), "here")
    stored = {"target": asdict(target), "image": "tasks:1", "host": "10.0.0.1"}
    (tmp_path / "cluster.json").write_text(json.dumps({"chosen": stored}))
    monkeypatch.setattr("portal.cluster.offer.own_addresses", lambda: ["10.0.0.1"])

    def inspected(self: Offer, what: str, *rest: object) -> dict[str, object]:
        if images is None:
            raise OfferFailed("away")
        return {"images": images, "version": "1", "towards": ""}

    monkeypatch.setattr(Offer, "_ask_cluster", inspected)
    said: list[str] = []
    told = {"YARDMASTER_KUBERNETES_WORKBENCH_IMAGE": own} if own else {}
    offer = Offer(tmp_path, tmp_path, told, "", 8080, is_wanted=False, say=said.append, stop=threading.Event())
    settled = offer.settle()
    assert settled.settings.get("YARDMASTER_KUBERNETES_WORKBENCH_IMAGE") == found
    assert (choice.NAME_THE_NOTEBOOKS in said) is says
    if found:
        assert json.loads((tmp_path / "cluster.json").read_text())["chosen"]["workbench_image"] == found
