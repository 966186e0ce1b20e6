# SPDX-License-Identifier: Apache-2.0
"""What a run counts, as Prometheus asks for it and as DPDK's telemetry has it."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import unittest
import urllib.parse
from pathlib import Path

from support.case import LIVE_ROW, long_only
from support.messages import MessageCase, free_port
from support.namespaces import joined_namespaces
from support.program import IS_ROOT, NOBODY
from support.scraping import PROMTOOL, SERVER, SHARE, ask, free_tcp_port, telemetry, values

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as families_of
except ImportError:
    families_of = None

needs_promtool = unittest.skipUnless(os.access(PROMTOOL, os.X_OK), "no promtool (setup/prometheus)")
LOOPBACK = ("forward", "--loopback", "--interval", "20ms")


class Metrics(MessageCase):
    def running(self, *command, metrics=None, ready=("stderr", LIVE_ROW), **options):
        """A run that is under way, and where it answers."""
        where = metrics or free_tcp_port()
        listen = where if isinstance(where, Path) else f"127.0.0.1:{where}"
        program = self.start(*command, "--metrics", listen, **options)
        program.wait_for(*ready)
        return program, where

    def scrape(self, where, **options):
        status, content_type, text = ask(where, **options)
        self.assertEqual(status, 200, text)
        return content_type, text

    def stop(self, program):
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)
        self.assertEqual(outcome.left, [], outcome)
        return outcome

    def test_they_are_the_totals_of_the_report(self):
        program, port = self.running(*LOOPBACK, "--json")
        content_type, text = self.scrape(port)
        self.assertEqual(content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        scrapes = 1
        while values(text)["warpline_verified_packets_total"] == 0:
            text = self.scrape(port)[1]
            scrapes += 1
        first, second = values(text), values(self.scrape(port)[1])
        report = self.report_of(self.stop(program), code=130)
        for name, last in (
            ("warpline_received_packets_total", report["rx"]["packets"]),
            ("warpline_received_bytes_total", report["rx"]["bytes"]),
            ("warpline_transmitted_packets_total", report["tx"]["packets"]),
            ("warpline_generated_packets_total", report["generated"]["packets"]),
            ("warpline_verified_packets_total", report["verify"]["checked"]),
            ('warpline_stage_packets_total{stage="receive"}', report["stages"][0]["packets"]),
        ):
            with self.subTest(name=name):
                self.assertLess(0, first[name])
                self.assertLessEqual(first[name], second[name])
                self.assertLessEqual(second[name], last)
        self.assertEqual(second['warpline_dropped_packets_total{reason="tx_full"}'], report["drops"].get("tx_full", 0))
        self.assertIn('command="forward"', text)
        self.assertEqual(first['warpline_scrapes_total{result="answered"}'], scrapes)
        self.assertEqual(second['warpline_scrapes_total{result="answered"}'], scrapes + 1)
        has_vnic = os.environ.get("WARPLINE_HAS_VNIC") == "1"
        self.assertEqual({name for name in first if "port_up" in name and first[name] == 1},
                         {'warpline_port_up{port="net_vnic0"}', 'warpline_port_up{port="net_vnic1"}'}
                         if has_vnic else {name for name in first if "port_up" in name})

        pools = {name.partition("{")[2]: size for name, size in first.items() if name.startswith("warpline_pool_mbufs{")}
        self.assertGreater(len(pools), 0)
        for pool, size in pools.items():
            # The receive rings have some, but for net_ring's.
            self.assertTrue(0 <= first["warpline_pool_free_mbufs{" + pool] < size + (not has_vnic), pool)

    def commands(self):
        """Each running command, under way for as long as a scrape takes."""
        (self.scratch.path / "routes").write_text("10.5.0.0/16 via 10.0.0.9\n", encoding="ascii")
        server = f"127.0.0.1:{free_port()}"
        ready = ("stderr", "listening on ")
        yield LOOPBACK, {}
        yield ("l3forward", "--port", "net_null0", "--address", "10.0.0.1/24", "--routes", "routes", "--interval", "20ms"), {}
        yield ("ingest", "--loopback", "--interval", "20ms"), {}
        yield ("ingest", "--loopback", "--path", "zerocopy", "--engine", "thread", "--interval", "20ms"), {}
        yield ("generate", "--port", "net_null0", "--interval", "20ms"), {}
        yield ("message", "server", "--listen", server, "--interval", "20ms"), {"ready": ready}
        yield ("message", "daemon", "--listen", f"127.0.0.1:{free_port()}", "--attach", self.scratch.path / "d"), {"ready": ready}
        ethdev = ("--port", "net_null0", "--address", "10.0.0.1/24")
        yield ("stream", "receive", *ethdev, "--listen", "80"), {"ready": ready}
        yield ("stream", "proxy", *ethdev, "--listen", "80", "--connect", server), {"ready": ready}
        yield ("stream", "send", *ethdev, "--connect", "10.0.0.2:80"), {"ready": ("stderr", "sending to")}

    @unittest.skipUnless(families_of, "no python3-prometheus-client")
    def test_every_command_writes_what_a_strict_reader_takes(self):
        for command, options in self.commands():
            with self.subTest(command=command):
                program, port = self.running(*command, **options)
                text = self.scrape(port)[1]
                found = {family.name: family for family in families_of(text)}
                for name in ("warpline_build", "warpline_received_packets", "warpline_dropped_packets", "process_open_fds"):
                    self.assertIn(name, found)
                self.assertEqual([family.name for family in found.values() if not family.documentation.endswith(".")], [])
                if os.access(PROMTOOL, os.X_OK):
                    self.check_by_promtool(self.scrape(port, accept="text/plain")[1])
                program.signal(signal.SIGINT)
                program.finish()

    def check_by_promtool(self, text):
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), text)

    def test_messages_are_counted(self):
        server, port = self.running("message", "server", "--listen", address := f"127.0.0.1:{free_port()}", "--json",
                                    ready=("stderr", "listening on "))
        report = self.message_report(self.client("--connect", address, "--requests", 500).finish())
        self.assertEqual(report["requests"]["ok"], 500)
        found = values(self.scrape(port)[1])
        self.assertEqual(found["warpline_message_served_requests_total"], 500)
        self.assertEqual(found['warpline_message_sessions_total{by="peer"}'], 1)
        self.stop(server)

    def test_what_is_not_a_scrape(self):
        program, port = self.running(*LOOPBACK)
        self.assertEqual(ask(port, path="/")[0], 404)
        self.assertEqual(ask(port, path="/metrics?x=y")[0], 200)
        self.assertEqual(ask(port, method="HEAD")[::2], (200, ""))
        self.assertEqual(ask(port, method="BREW")[0], 501)
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for text in (b"\0\1\2\3\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"GET " + b"/" * 100_000,
                     b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
                     b"GET http://[::1:80/metrics HTTP/1.1\r\n\r\n"):
            with self.subTest(text=text[:20]), socket.create_connection(("127.0.0.1", port)) as handle:
                handle.settimeout(30)
                try:
                    handle.sendall(text)
                    handle.shutdown(socket.SHUT_WR)
                    self.assertNotIn(b" 200 ", handle.recv(64))
                except ConnectionError:
                    pass  # it was not read to its end
        self.scrape(port)  # nobody of them keeps it from answering
        for handle in silent:
            handle.close()
        self.stop(program)

    def test_http_by_its_standard(self):
        program, port = self.running(*LOOPBACK)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

        def answer(method, path="/metrics", headers=()):
            connection.request(method, path, headers=dict(headers))
            response = connection.getresponse()
            return response, response.read().decode()

        # One connection for all of it: a body behind HEAD would be read as the next response (RFC 9110, 9.3.2).
        for path, status in (("/metrics", 200), ("/other", 404)):
            head, nothing = answer("HEAD", path)
            self.assertEqual((head.status, nothing), (status, ""))
            whole, text = answer("GET", path)
            self.assertEqual((whole.status, int(whole.getheader("Content-Length"))), (status, len(text)))
            self.assertEqual(head.getheader("Content-Type"), whole.getheader("Content-Type"))
            self.assertGreater(int(head.getheader("Content-Length")), 0)
        # RFC 9110, 15.5.6: a method that is known and not allowed.
        for method in ("DELETE", "POST", "PUT", "OPTIONS"):
            refused, _ = answer(method)
            self.assertEqual((refused.status, refused.getheader("Allow")), (405, "GET, HEAD"))
        negotiated, _ = answer("GET", headers={"Accept": "TEXT/plain;q=0.4, Application/OpenMetrics-Text; Q=0.6"})
        self.assertIn("application/openmetrics-text", negotiated.getheader("Content-Type"))
        self.assertEqual(negotiated.getheader("Vary"), "Accept")  # RFC 9110, 12.5.5
        negotiated, _ = answer("GET", headers={"Accept": "text/plain, application/openmetrics-text;q=0.6"})
        self.assertIn("text/plain", negotiated.getheader("Content-Type"))
        connection.close()
        # RFC 9112, 3.2: a request has one Host header, which HTTP/1.0 did not know.
        for text, status in ((b"GET /metrics HTTP/1.1\r\n\r\n", b"400"), (b"GET /metrics HTTP/1.0\r\n\r\n", b"200"),
                             (b"GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400")):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as handle:
                handle.sendall(text)
                self.assertEqual(handle.makefile("rb").readline().split()[1], status)
        self.stop(program)

    @unittest.skipUnless(IS_ROOT, "makes network namespaces")
    def test_an_address_that_may_not_ask(self):
        near, far = joined_namespaces(self)
        near.ip("addr", "add", "10.9.0.1/24", "dev", "left0")
        far.ip("addr", "add", "10.9.0.2/24", "dev", "right0")
        for allow, status in (((), 403), (("--metrics-allow", "10.8.0.0/16,10.9.0.2/32"), 200)):
            with self.subTest(allow=allow):
                program = self.start(*LOOPBACK, "--metrics", "0.0.0.0:9100", *allow, netns=near.name)
                program.wait_for("stderr", LIVE_ROW)
                with far.entered():
                    self.assertEqual(ask(("10.9.0.1", 9100))[0], status)
                    self.assertEqual(ask(("10.9.0.1", 9100))[0], status)
                with near.entered():
                    found = values(self.scrape(("127.0.0.1", 9100))[1])
                self.assertEqual(found['warpline_scrapes_total{result="refused"}'], 2 if status == 403 else 0)
                outcome = self.stop(program)
                refused = [line for line in outcome.stderr.splitlines() if "10.9.0.2 was refused" in line]
                self.assertEqual(len(refused), status == 403, outcome)  # said once, however often it asks

    def test_unix_socket(self):
        path = self.scratch.path / "metrics"
        program, _ = self.running(*LOOPBACK, metrics=path)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.scrape(path)
        if IS_ROOT:
            other = subprocess.run(["setpriv", f"--reuid={NOBODY}", "--clear-groups", "curl", "-s", "--unix-socket", path, "http://x/metrics"],
                                   capture_output=True, check=False)
            self.assertEqual((other.returncode, other.stdout), (7, b""))
        second = self.warpline(*LOOPBACK, "--metrics", path)
        self.assert_error_of(second, f"cannot answer scrapes at {path}: another process does")
        self.stop(program)
        self.assertFalse(path.exists())

    def assert_error_of(self, outcome, text, code=3):
        self.assertEqual((outcome.code, outcome.stdout), (code, ""), outcome)
        self.assertIn(text, outcome.stderr.splitlines()[-1])

    def test_a_killed_process_leaves_nothing_in_the_way(self):
        path = self.scratch.path / "metrics"
        for _ in range(2):
            program, _ = self.running(*LOOPBACK, "--telemetry", "again", metrics=path)
            self.scrape(path)
            os.killpg(program.process.pid, signal.SIGKILL)
            program.process.wait()
            self.assertTrue(path.exists())
        program, _ = self.running(*LOOPBACK, "--telemetry", "again", metrics=path)
        self.scrape(path)
        self.stop(program)  # which finds nothing left behind

    def test_where_nobody_can_listen(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            where = f"127.0.0.1:{taken.getsockname()[1]}"
            self.assert_error_of(self.warpline(*LOOPBACK, "--metrics", where), f"cannot answer scrapes at {where}: Address already in use")
        (self.scratch.path / "file").write_text("kept", encoding="ascii")
        for where, why in (("192.0.2.1:9100", "Cannot assign requested address"),
                           (self.scratch.path / "file", "it is something else than a socket"),
                           (self.scratch.path / "nowhere" / "socket", "No such file or directory")):
            with self.subTest(where=where):
                self.assert_error_of(self.warpline(*LOOPBACK, "--metrics", where), f"cannot answer scrapes at {where}: {why}")
        self.assertEqual((self.scratch.path / "file").read_text(encoding="ascii"), "kept")

    def test_what_makes_no_sense(self):
        for arguments, text in (
            (("forward", "--loopback", "--metrics", "everywhere"), "--metrics: cannot read 'everywhere'"),
            (("forward", "--loopback", "--metrics-allow", "10.0.0.0/8"), "nothing asks for metrics over TCP"),
            (("forward", "--loopback", "--metrics", "127.0.0.1:9", "--metrics-allow", "10.0.0.0"), "--metrics-allow: "),
            (("forward", "--loopback", "--telemetry", "a/b"), "--telemetry: cannot use 'a/b': it is no name"),
            (("message", "server", "--telemetry", "a"), "DPDK does not run for sockets"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline(*arguments), 2, text)

    @unittest.skipUnless(IS_ROOT and shutil.which("dpdk-telemetry.py"), "needs root and dpdk-telemetry.py")
    def test_dpdk_telemetry(self):
        program = self.start(*LOOPBACK, "--telemetry", "warp", "--json")
        program.wait_for("stderr", LIVE_ROW)
        commands, names, totals, drops, stages, nothing, stats = telemetry(
            program, "warp", "/", "/warpline/metrics", "/warpline/totals", "/warpline/drops",
            "/warpline/metrics,warpline_stage_packets", "/warpline/metrics,warpline_nothing", "/ethdev/list")[-7:]
        self.assertLessEqual({"/warpline/metrics", "/warpline/totals", "/warpline/drops"}, set(commands["/"]))
        self.assertIn("warpline_received_packets", names["/warpline/metrics"])
        self.assertLess(0, totals["/warpline/totals"]["warpline_received_packets"])
        self.assertEqual(drops["/warpline/drops"], {})
        self.assertEqual(list(stages["/warpline/metrics"]), ["receive", "work", "transmit"])
        self.assertLess(0, stages["/warpline/metrics"]["receive"])
        self.assertIsNone(nothing["/warpline/metrics"])
        self.assertEqual(stats["/ethdev/list"], [0, 1])
        # A name is one process's.
        second = self.start(*LOOPBACK, "--telemetry", "warp").finish()
        self.assert_error_of(second, "cannot use --telemetry warp: a process of that name runs")
        report = self.report_of(self.stop(program), code=130)
        self.assertLessEqual(totals["/warpline/totals"]["warpline_received_packets"], report["rx"]["packets"])

    @needs_promtool
    def test_alert_rules(self):
        for check in (("check", "rules", "warpline.rules.yml"), ("test", "rules", "warpline.tests.yml")):
            done = subprocess.run([PROMTOOL, *check], cwd=SHARE / "prometheus", capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_rules_and_dashboard_name_metrics_that_there_are(self):
        known = set()
        for command, options in self.commands():
            program, port = self.running(*command, **options)
            known |= {re.match(r"\w+", name)[0] for name in values(self.scrape(port)[1])}
            program.signal(signal.SIGINT)
            program.finish()
        known |= {"warpline_message_latency_seconds", "up"}  # that of a client's requests, and the scraper's own
        dashboard = json.loads((SHARE / "grafana" / "warpline.json").read_text(encoding="utf-8"))
        texts = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        texts.append((SHARE / "prometheus" / "warpline.rules.yml").read_text(encoding="utf-8"))
        named = {name for text in texts for name in re.findall(r"\b(?:warpline|process)_\w+", text)}
        self.assertEqual(named - known, set())
        self.assertGreater(len(named), 20)

    @long_only
    @needs_promtool
    def test_a_prometheus_scrapes_it_and_alerts(self):
        """A server of its own, with the rules of share/ made quick: it sees the run, and then that it is gone."""
        program, port = self.running(*LOOPBACK)
        folder = self.scratch.path
        rules = (SHARE / "prometheus" / "warpline.rules.yml").read_text(encoding="utf-8")
        (folder / "rules.yml").write_text(rules.replace("for: 1m", "for: 0s"), encoding="utf-8")
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 100ms, scrape_timeout: 100ms, evaluation_interval: 100ms}\n"
            "rule_files: [rules.yml]\n"
            f"scrape_configs: [{{job_name: warpline, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n",
            encoding="ascii")
        subprocess.run([PROMTOOL, "check", "config", folder / "prometheus.yml"], check=True, capture_output=True)
        own = free_tcp_port()
        server = subprocess.Popen(
            [SERVER, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{own}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def query(expression):
            connection = http.client.HTTPConnection("127.0.0.1", own, timeout=30)
            try:
                connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
                return json.loads(connection.getresponse().read())["data"]["result"]
            except (ConnectionError, http.client.HTTPException, KeyError, ValueError):
                return []
            finally:
                connection.close()

        def await_value(expression):
            while not (found := query(expression)):
                self.assertIsNone(server.poll())
            return found

        await_value('rate(warpline_received_packets_total{job="warpline"}[5s]) > 0')
        await_value('warpline_build_info{command="forward"} == 1')
        await_value('warpline_latency_seconds{quantile="0.99"} > 0')
        self.assertEqual(query("up == 0"), [])
        self.stop(program)
        await_value('ALERTS{alertname="WarplineDown", alertstate="firing"}')


if __name__ == "__main__":
    unittest.main()
