# SPDX-License-Identifier: Apache-2.0
"""One iperf3 flow between two namespaces."""

import json
import subprocess

SECONDS = 2


def serve(case, namespace):
    """One iperf3 server for one flow, listening when this returns. It ends with the flow."""
    server = subprocess.Popen(
        namespace.command("iperf3", "--server", "--one-off", "--forceflush"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def end():
        server.kill()
        server.wait()
        server.stdout.close()

    case.addCleanup(end)
    for line in server.stdout:
        if "listening" in line:
            return server
    return case.fail("iperf3 does not listen")


def iperf(case, client, server, address, *arguments, seconds=SECONDS):
    """What iperf3 says at its end about a flow from `client` to `address` in `server`."""
    listening = serve(case, server)
    command = client.command("iperf3", "--client", address, "--json", "--time", seconds, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    answer = json.loads(done.stdout)
    case.assertEqual((done.returncode, answer.get("error")), (0, None), done.stdout)
    listening.communicate(timeout=30)  # or the next one finds its port in use
    return answer["end"]
