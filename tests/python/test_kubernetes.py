# SPDX-License-Identifier: Apache-2.0
"""The manifests of share/kubernetes against the schemas of Kubernetes, and what they promise each other.

KubeRay's own definition of a RayCluster is not at hand: its fields are held against those named here, and the pods in it
against the schema of pods.
"""

import copy
import json
import os
import pathlib
import sys
import unittest

sys.path.append(os.environ["WARPLINE_RAY_WHEELS"])
try:
    import kubernetes_validate
    import yaml
except ImportError:
    kubernetes_validate = None

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "share/kubernetes"
KUBERNETES = "1.37"
PORT = "intel.com/warpline_port"
# Of ray.io/v1: those that there must be, and those that there may be, as far as the manifests may want them.
CLUSTER = {"headGroupSpec"}, {"rayVersion", "workerGroupSpecs", "enableInTreeAutoscaling", "autoscalerOptions", "suspend"}
HEAD = {"template"}, {"rayStartParams", "serviceType", "enableIngress"}
WORKERS = {"groupName", "template"}, {"rayStartParams", "replicas", "minReplicas", "maxReplicas", "numOfHosts", "idleTimeoutSeconds", "suspend"}


def read(name):
    (document,) = yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))
    return document


def check(document):
    """Raises ValidationError, also for fields that the schema does not have."""
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


def check_fields(value, fields):
    needed, allowed = fields
    if missing := needed - value.keys():
        raise ValueError(f"without {missing}")
    if unknown := value.keys() - needed - allowed:
        raise ValueError(f"unknown: {unknown}")


def check_cluster(cluster):
    check_fields(cluster, ({"apiVersion", "kind", "metadata", "spec"}, set()))
    if (cluster["apiVersion"], cluster["kind"]) != ("ray.io/v1", "RayCluster"):
        raise ValueError("it is no RayCluster")
    check_fields(cluster["spec"], CLUSTER)
    check_fields(cluster["spec"]["headGroupSpec"], HEAD)
    for group in cluster["spec"]["workerGroupSpecs"]:
        check_fields(group, WORKERS)
        if not group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]:
            raise ValueError(f"replicas of {group['groupName']}")
    for group in groups(cluster):
        if any(not isinstance(value, str) for value in group["rayStartParams"].values()):
            raise ValueError("rayStartParams are texts")
        check({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "of-the-group"}, **group["template"]})


def groups(cluster):
    return [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]


def containers():
    pods = [read("forward_pod.yaml")["spec"], *(group["template"]["spec"] for group in groups(read("ray_cluster.yaml")))]
    return [(pod, container) for pod in pods for container in pod["containers"]]


@unittest.skipUnless(kubernetes_validate, "there are no schemas of Kubernetes: setup/ray_wheels")
class Manifests(unittest.TestCase):
    def test_all_are_looked_at(self):
        self.assertEqual({"sriov_ports.yaml", "forward_pod.yaml", "ray_cluster.yaml"}, {path.name for path in FOLDER.glob("*.yaml")})

    def test_capabilities_are_given_to_root_alone(self):
        """Kubernetes sets no ambient capabilities, so those that are added have an effect for user 0 only."""
        for pod, container in containers():
            context = {**pod.get("securityContext", {}), **container.get("securityContext", {})}
            if context.get("capabilities", {}).get("add"):
                self.assertEqual(context.get("runAsUser"), 0, container["name"])

    def test_are_what_kubernetes_takes(self):
        check(read("sriov_ports.yaml"))
        check(read("forward_pod.yaml"))
        check_cluster(read("ray_cluster.yaml"))

    def test_what_is_wrong_is_found(self):
        pod = read("forward_pod.yaml")
        for container in ({"resources": {"limits": ["4"]}}, {"resorces": {}}, {"ports": [{"containerPort": "http"}]}):
            wrong = copy.deepcopy(pod)
            wrong["spec"]["containers"][0].update(container)
            with self.assertRaises(kubernetes_validate.ValidationError, msg=container):
                check(wrong)
        for change in (
            lambda cluster: cluster["spec"].update(workers=[]),
            lambda cluster: cluster["spec"]["workerGroupSpecs"][0].update(replicas=100),
            lambda cluster: cluster["spec"]["workerGroupSpecs"][0]["rayStartParams"].update({"num-cpus": 1}),
        ):
            wrong = copy.deepcopy(read("ray_cluster.yaml"))
            change(wrong)
            with self.assertRaises(ValueError):
                check_cluster(wrong)

    def test_hugepages_are_had_as_kubernetes_wants_it(self):
        for pod, container in containers():
            asked = container["resources"]
            self.assertEqual(asked["requests"], asked["limits"])  # hugepages and devices cannot be overcommitted, processors are to be own
            pages = {name for name in asked["limits"] if name.startswith("hugepages-")}
            media = {volume["name"]: volume["emptyDir"]["medium"] for volume in pod.get("volumes", ())}
            mounted = {media[mount["name"]] for mount in container.get("volumeMounts", ())}
            self.assertEqual({page.replace("hugepages-", "HugePages-") for page in pages}, {medium for medium in mounted if medium != "Memory"})
            self.assertEqual(PORT in asked["limits"], bool(pages))

    def test_the_ports_that_are_asked_for_are_offered(self):
        config = json.loads(read("sriov_ports.yaml")["data"]["config.json"])
        offered = {f"intel.com/{resource['resourceName']}" for resource in config["resourceList"]}
        self.assertTrue(all(resource["selectors"] for resource in config["resourceList"]))
        asked = {name for _, container in containers() for name in container["resources"]["limits"] if name.startswith("intel.com/")}
        self.assertEqual((set(), {PORT}), (asked - offered, asked))

    def test_workers_tell_ray_of_the_ports_that_they_have(self):
        (workers,) = read("ray_cluster.yaml")["spec"]["workerGroupSpecs"]
        told = json.loads(json.loads(workers["rayStartParams"]["resources"]))  # the text of JSON, in quotes for a shell
        (container,) = workers["template"]["spec"]["containers"]
        self.assertEqual({"warpline_port": int(container["resources"]["limits"][PORT])}, told)

    def test_ray_is_the_one_that_is_tested(self):
        pinned = (FOLDER.parents[1] / "setup/ray_wheels.txt").read_text(encoding="utf-8")
        self.assertIn(f"\nray=={read('ray_cluster.yaml')['spec']['rayVersion']} ", pinned)


if __name__ == "__main__":
    unittest.main()
