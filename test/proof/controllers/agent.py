"""The agent of examples/agent-python with a task of the proof, which notes every run in a file as those of Node do."""

import importlib.util
import os
import sys

example = os.path.join(os.path.dirname(__file__), "..", "..", "..", "examples", "agent-python", "agent.py")
spec = importlib.util.spec_from_file_location("agent", example)
agent = importlib.util.module_from_spec(spec)
spec.loader.exec_module(agent)


def snake(payload, job):
    with open(os.path.join(os.environ["PROOF_NOTES"], str(os.getpid())), "a") as notes:
        notes.write(f"{job.id} {job.epoch}\n")
    if job.stopped.wait(float(payload["ms"]) / 1000):
        raise InterruptedError("told to stop")
    return {"epoch": job.epoch}


agent.TASKS.clear()
agent.TASKS["snake"] = snake
sys.exit(agent.main())
