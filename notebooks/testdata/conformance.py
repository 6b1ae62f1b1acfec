"""Speaks the Jupyter protocol to the installed kernel with Debian's jupyter_client.

Usage: conformance.py KERNEL. The kernel is found on JUPYTER_PATH. Prints one line and
exits with 0 if all is as it should be."""

import sys
import time

import jupyter_client

name = sys.argv[1]
start = time.time()
manager = jupyter_client.KernelManager(kernel_name=name)
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
ready = time.time() - start


def check(what, is_right, got):
    if not is_right:
        manager.shutdown_kernel(now=True)
        sys.exit("%s: %r" % (what, got))


def wait_for_reply(message_id, channel="shell"):
    while True:
        message = (client.get_shell_msg if channel == "shell" else client.get_control_msg)(timeout=60)
        if message["parent_header"].get("msg_id") == message_id:
            return message["content"]


def run(code, **more):
    outputs = []
    reply = client.execute_interactive(code, timeout=60, output_hook=lambda message: outputs.append((message["msg_type"], message["content"])), **more)
    return reply["content"], [output for output in outputs if output[0] not in ("status", "execute_input")]


info = wait_for_reply(client.kernel_info())
check("kernel_info", info["protocol_version"] == "5.4" and info["language_info"]["name"] == "go", info)
r, out = run('import ("fmt"; "gonum.org/v1/gonum/mat")')
check("import", r["status"] == "ok", r)
r, out = run('fmt.Println("ü")\nDisplayID("d", 1)\nUpdate("d", 2)\nmat.NewDense(1, 1, []float64{7})')
kinds = [o[0] for o in out]
check("messages", kinds == ["stream", "display_data", "update_display_data", "execute_result"], kinds)
check("stream", out[0][1] == {"name": "stdout", "text": "ü\n"}, out[0])
check("update", out[2][1]["transient"]["display_id"] == "d", out[2])
check("result", "text/html" in out[3][1]["data"] and "7" in out[3][1]["data"]["text/plain"], out[3])
r, out = run("x := 1\npanic(x)")
check("error", r["status"] == "error" and r["ename"] == "Panic" and "line 2" in r["evalue"] and out[0][0] == "error", (r, out))
r, out = run("", user_expressions={"a": "1 + 1"})
check("user_expressions", r["user_expressions"]["a"]["data"]["text/plain"] == "2", r)
r = wait_for_reply(client.complete("mat.NewDen", 10))
check("complete", "NewDense" in r["matches"] and r["cursor_start"] == 4, r)
r = wait_for_reply(client.inspect("mat.NewDense", 12))
check("inspect", r["found"] and "creates a new Dense" in r["data"]["text/plain"], r)
for code, status in (("x", "complete"), ("f(", "incomplete"), ("}", "invalid")):
    r = wait_for_reply(client.is_complete(code))
    check("is_complete", r["status"] == status, r)
r = wait_for_reply(client.history(hist_access_type="tail", n=2))
check("history", len(r["history"]) == 2, r)
r = wait_for_reply(client.comm_info())
check("comm_info", r["comms"] == {}, r)
r, out = run("Input(\"? \")", allow_stdin=True, stdin_hook=lambda m: client.input("me"))
check("input", out[-1][1]["data"]["text/plain"] == "me", out)
for i in range(20):
    msg = client.execute("for { }")
    while client.get_iopub_msg(timeout=60)["msg_type"] != "execute_input":
        pass
    manager.interrupt_kernel()
    r = wait_for_reply(msg)
    check("interrupt %d" % i, r["ename"] == "Interrupted", r)
r, out = run("6 * 7")
check("after interrupts", out[0][1]["data"]["text/plain"] == "42", out)
check("heartbeat", client.hb_channel.is_beating(), False)
with open("/proc/%d/status" % manager.provisioner.process.pid) as f:
    private = [int(line.split()[1]) / 1024 for line in f if line.startswith("RssAnon")][0]
check("memory without the pages of the program file: MB", private < 25, private)
manager.restart_kernel()
client.wait_for_ready(timeout=60)
r, out = run("6 * 7")
check("restart", out[0][1]["execution_count"] == 1, out)
client.shutdown()
deadline = time.time() + 20
while manager.is_alive() and time.time() < deadline:
    time.sleep(0.05)
check("shutdown", not manager.is_alive(), True)
manager.shutdown_kernel(now=True)
print("ready in %.2f s, %.0f MB" % (ready, private))
