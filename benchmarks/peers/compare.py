#!/usr/bin/env python3
"""Runs hipfire and llama.cpp on the same GGUF file, in turns, and prints medians and spreads.

    compare.py --tools build/bench --llama-bench FOLDER/llama-bench model.gguf [options]

A round is one process of each arm: a plain read of memory, hf-run with each kind of activations,
llama-bench with each of its settings. Shares are taken within a round. With --json, one object
for each arm and phase. Needs Python alone.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

# What llama-bench is run with beside the threads; its best one counts.
PEER_SETTINGS = {
    "default": [],
    "flash attention": ["-fa", "1"],
    "no repacking": ["--repack", "0"],
}


def read_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tools", required=True, help="folder of a build with HF_BENCHMARKS")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt; 0: no prompt")
    parser.add_argument("--decode", type=int, default=64, help="tokens to make; 0: none")
    parser.add_argument("--activations", default="i16,int8", help="of hf-run; comma-separated")
    parser.add_argument("--peer", default=",".join(PEER_SETTINGS), help="settings of llama-bench")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"compare.py: {' '.join(command[:4])} ...: {done.stderr.strip()[-400:]}")
    return done.stdout


def plain_read(arguments):
    """GB/s of the better of two reads."""
    lines = output_of([
        f"{arguments.tools}/benchmarks/micro/hf-bandwidth", "--reads-only", "--json", "-f", "q4_0",
        "--threads", str(arguments.threads), "--windows", "5"]).splitlines()
    return max(json.loads(line)["gb_per_s"]["median"] for line in lines)


def hipfire(arguments, activations, prompt, decode):
    """Tokens per second of the phase, and bytes that a token reads."""
    ids = ",".join(str(1 + i % 1000) for i in range(max(prompt, 1)))
    lines = output_of([
        f"{arguments.tools}/tools/hf-run", "-m", arguments.model, "--prompt-ids", ids,
        "--max-tokens", str(max(decode, 1)), "--ignore-eos", "--temp", "0", "--ctx", "1024", "--threads", str(arguments.threads),
        "--activations", activations, "--json", "-q"]).splitlines()
    summary = json.loads(lines[-1])
    if summary["tokens_out"] != max(decode, 1):
        sys.exit(f"compare.py: hf-run stopped after {summary['tokens_out']} tokens")
    phase = summary["prompt" if prompt > 0 else "decode"]
    return phase["tok_per_s"], phase["bytes_per_token"]


def llama_cpp(arguments, setting, prompt, decode):
    runs = json.loads(output_of([
        arguments.llama_bench, "-m", arguments.model, "-t", str(arguments.threads), "-r", "1",
        "-p", str(prompt), "-n", str(decode), "-o", "json", *PEER_SETTINGS[setting]]))
    return runs[0]["avg_ts"]


def measure(arguments, prompt, decode):
    """{arm: [value of each round]}, and the bytes of a token"""
    values, token_bytes = {}, None
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        values.setdefault("read", []).append(plain_read(arguments))
        for activations in arguments.activations.split(","):
            speed, token_bytes = hipfire(arguments, activations, prompt, decode)
            values.setdefault(f"hipfire {activations}", []).append(speed)
        for setting in arguments.peer.split(","):
            speed = llama_cpp(arguments, setting, prompt, decode)
            values.setdefault(f"llama.cpp {setting}", []).append(speed)
    return values, token_bytes


def spread(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def shown(s, scale=1.0):
    return f"{scale * s['median']:8.2f} ({scale * s['lowest']:.2f} .. {scale * s['highest']:.2f})"


def report(arguments, phase, values, token_bytes):
    peers = [arm for arm in values if arm.startswith("llama.cpp")]
    best = max(peers, key=lambda arm: statistics.median(values[arm]))
    read = values["read"]
    if not arguments.json:
        print(f"\n{phase}: {arguments.model}, {arguments.threads} threads, "
              f"{arguments.rounds} rounds; plain read {shown(spread(read))} GB/s")
    for arm, speeds in values.items():
        if arm == "read":
            continue
        record = {
            "phase": phase, "model": arguments.model, "threads": arguments.threads, "arm": arm,
            "rounds": arguments.rounds, "read_gb_per_s": spread(read), "tok_per_s": spread(speeds),
            "of_best_peer": spread([a / b for a, b in zip(speeds, values[best])]),
        }
        line = f"{arm:28} {shown(record['tok_per_s'])} tok/s  " \
               f"{shown(record['of_best_peer'])} x the peer"
        if phase == "decode":
            record["of_read"] = spread(
                [s * token_bytes / 1e9 / r for s, r in zip(speeds, read)])
            line += f"  {shown(record['of_read'], 100)} % of the read"
        print(json.dumps(record) if arguments.json else line)


def main():
    arguments = read_arguments()
    if arguments.decode > 0:
        report(arguments, "decode", *measure(arguments, 0, arguments.decode))
    if arguments.prompt > 0:
        report(arguments, "prompt", *measure(arguments, arguments.prompt, 0))


if __name__ == "__main__":
    main()
