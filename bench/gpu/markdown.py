# SPDX-License-Identifier: Apache-2.0
"""The results as Markdown tables."""

HEADER = "| what | asked | measured | best of | lost | on the CPU | verdict | verified |\n| --- | --- | --- | --- | --- | --- | --- | --- |"


def number(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def interval(row):
    low, high = row["ci95"]
    return f"{number(row['median'])} [{number(low)}, {number(high)}]"


def limit_text(result):
    sign = "<=" if result["limit_is"] == "most" else ">="
    return f"{result['figure']} {sign} {number(result['limit'])} {result['unit']}"


def verified(step):
    checks = step["checks"].values()
    passed = sum(check["passed"] for check in checks)
    return f"{passed} of {len(checks)}" if checks else "-"


def table(steps):
    lines = [HEADER]
    for step in steps:
        for result in step["figures"]:
            best = result.get("best")
            measured = interval(result["setups"][best]) if best else "-"
            baseline = interval(result["baseline"]) if "baseline" in result else "-"
            lost = f"{100 * result['lost']['median']:.2g} %" if best else "-"
            cells = (step["what"], limit_text(result), measured, best or "-", lost, baseline, result["verdict"], verified(step))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def failures(steps):
    lines = []
    for step in steps:
        for name, many in step["failures"].items():
            last = many[-1]
            how = "timed out" if last["timed_out"] else f"exit code {last['code']}"
            why = last["stderr"].strip().splitlines()[-1:] or ["no message"]
            lines.append(f"- {step['name']}: {name}: {how} in {len(many)} rounds: {why[0]}")
        for name, check in step["checks"].items():
            if not check["passed"]:
                codes = ", ".join(f"{kind} exit code {check[kind]['code']}" for kind in ("full_load", "every_byte"))
                lines.append(f"- {step['name']}: {name}: not verified ({codes}), so not timed")
    return "\n".join(lines)
