"""An agent for Baton in Python, with nothing but the standard library.

    python3 agent.py --url http://127.0.0.1:8420 --name snake

It leases jobs from whoever leads, runs them one at a time, renews the lease meanwhile, and posts what became of them. Every call has
a deadline. When the leader changes, it renews its lease at the new one and posts its result there, under the new epoch.
"""

import argparse
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
import uuid

VERSION = "1"
POLL_MS = 20_000
CALL_SECONDS = 5


# ---------------------------------------------------------------- the tasks


class Permanent(Exception):
    """Another attempt would end the same way."""


def word_count(payload, job):
    text = payload.get("text") if isinstance(payload, dict) else None
    if not isinstance(text, str):
        raise Permanent("payload.text must be a text")
    words = text.split()
    job.log(f"counted {len(words)} words")
    return {"words": len(words), "characters": len(text)}


def slow_square(payload, job):
    steps = 10
    for step in range(steps):
        # False as long as nobody wants us to stop.
        if job.stopped.wait(float(payload.get("seconds", 1)) / steps):
            raise InterruptedError("told to stop")
        job.progress(100 * (step + 1) / steps)
    return {"square": payload["number"] ** 2, "job_epoch": job.epoch}


TASKS = {"word-count": word_count, "slow-square": slow_square}


# ---------------------------------------------------------------- the way to the leader


class NoLeader(Exception):
    """Nobody leads, or nobody can be reached: try again in a moment."""


class Cluster:
    """Knows some nodes and who led last. Used by two threads; a race costs one refused call."""

    def __init__(self, urls, token=None):
        self.nodes = [url.rstrip("/") for url in urls]
        self.leader = None
        # For nodes that ask who calls.
        self.headers = {"authorization": f"Bearer {token}"} if token else {}

    def post(self, path, body, seconds=CALL_SECONDS):
        """The answer of the leader, as (status, body). One round over all nodes."""
        asked, reasons = set(), []
        url = self.leader or self.nodes[0]
        while url:
            asked.add(url)
            hint = None
            try:
                status, answer = call("POST", url + path, body, seconds, self.headers)
                error = answer.get("error") if isinstance(answer, dict) else None
                if status < 500 and status not in (408, 429) and error != "NOT_LEADER":
                    self.leader = url
                    return status, answer
                if error == "NOT_LEADER":
                    hint = answer.get("leader_url")
                reasons.append(f"{url}: {status} {error}")
            except (OSError, ValueError) as failure:
                reasons.append(f"{url}: {failure}")
            if self.leader == url:
                self.leader = None
            candidates = [hint.rstrip("/")] if hint else []
            url = next((each for each in candidates + self.nodes if each not in asked), None)
        raise NoLeader("; ".join(reasons))

    def learn(self):
        """Asks any node for all the others, and keeps those that it knew."""
        for url in list(self.nodes):
            try:
                status, answer = call("GET", url + "/cluster/nodes", None, CALL_SECONDS, self.headers)
                if status != 200:
                    continue
                listed = [node["url"].rstrip("/") for node in answer["nodes"] if node.get("url")]
                self.nodes = self.nodes + [each for each in listed if each not in self.nodes]
                return
            except (OSError, ValueError, KeyError):
                continue


def call(method, url, body, seconds, headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            status, text = refusal.code, refusal.read()
    except urllib.error.URLError as failure:
        raise OSError(failure.reason) from failure
    except Exception as failure:  # http.client has exceptions of its own for an answer that breaks off
        raise OSError(repr(failure)) from failure
    return status, json.loads(text) if text else None


class BackOff:
    """Soon at first, then up to two seconds, and never at the same moment as the others."""

    def __init__(self):
        self.failures = 0

    def wait(self, event):
        self.failures += 1
        seconds = min(0.1 * 1.5**self.failures, 2.0)
        event.wait(seconds * random.uniform(0.5, 1.5))


# ---------------------------------------------------------------- one job


class Job:
    """A leased job: what a task sees of it, and the lease that must be kept."""

    def __init__(self, agent, lease, task):
        self.agent = agent
        self.lease_id = lease["lease_id"]
        self.leader_epoch = lease["leader_epoch"]
        self.expires = lease["expires_in_ms"] / 1000
        self.trusted_until = time.monotonic() + self.expires
        self.id = task["job_id"]
        self.epoch = task["job_epoch"]
        self.task = task["task"]
        self.payload = task["payload"]
        self.timeout = None if task["timeout_ms"] is None else task["timeout_ms"] / 1000
        self.stopped = threading.Event()
        self.why = None
        self.settled = threading.Event()
        # The task's thread says things, and the thread that renews posts them; both may renew.
        self.lock = threading.Lock()
        self.lines, self.percent = [], None

    # For the task.

    def log(self, message, level="info"):
        with self.lock:
            self.lines.append({"level": level, "message": str(message)})

    def progress(self, percent):
        with self.lock:
            self.percent = percent

    # For the agent.

    def stop(self, why):
        if self.why is None:
            self.why = why
        self.stopped.set()

    def named(self):
        return {
            "lease_id": self.lease_id,
            "job_id": self.id,
            "job_epoch": self.epoch,
            "leader_epoch": self.leader_epoch,
        }

    def renew(self):
        """False when the lease is not ours any more. Raises NoLeader."""
        sent_at = time.monotonic()
        body = {"agent": self.agent.name, "lease_id": self.lease_id}
        status, answer = self.agent.cluster.post("/v1/leases/renew", body, min(CALL_SECONDS, self.expires / 3))
        if status != 200:
            self.stop("lease_lost")
            return False
        self.leader_epoch = answer["leader_epoch"]
        self.trusted_until = sent_at + answer["expires_in_ms"] / 1000
        if any(each["job_id"] == self.id for each in answer["cancelled"]):
            self.stop("cancelled")
        return True

    def keep(self):
        """Runs in a thread beside the task until the job is settled."""
        started_at = time.monotonic()
        renew_at = started_at + self.expires / 3
        while not self.settled.wait(min(0.25, self.expires / 10)):
            now = time.monotonic()
            if self.timeout is not None and now - started_at > self.timeout:
                self.stop("timeout")
            try:
                self.report()
                if now >= renew_at and self.why != "lease_lost":
                    self.renew()
                    renew_at = now + self.expires / 3
            except NoLeader:
                pass  # the next turn tries again, as long as the lease lasts
            if time.monotonic() >= self.trusted_until:
                self.stop("lease_lost")

    def report(self):
        """Posts what the task has said since the last time. What is refused is let go; the result has the last word."""
        with self.lock:
            lines, percent = self.lines[:500], self.percent
        if not lines and percent is None:
            return
        body = {**self.named(), "lines": lines}
        if percent is not None:
            body["progress"] = {"percent": percent}
        self.agent.cluster.post("/v1/logs", body)
        with self.lock:
            del self.lines[: len(lines)]
            if self.percent == percent:
                self.percent = None

    def post(self, status, result=None, error=None):
        """Until it is accepted or refused, whoever leads by then."""
        back_off = BackOff()
        while True:
            try:
                sent = self.leader_epoch
                body = {"agent": self.agent.name, **self.named(), "status": status, "result": result}
                if error is not None:
                    body["error"] = error
                code, answer = self.agent.cluster.post("/v1/results", body)
                if code == 200:
                    return say(f"{self.id}: {status}, and the job is {answer['status']}")
                # Is it the job that has moved on, or only the leader? A renewal tells: a new leader has another epoch.
                if answer.get("error") == "STALE_EPOCH" and (self.leader_epoch != sent or self.renew()):
                    if self.leader_epoch != sent:
                        continue
                return say(f"{self.id}: the result was refused: {answer.get('error')} {answer.get('message')}")
            except NoLeader as failure:
                if self.agent.hurried.is_set():
                    return say(f"{self.id}: the result could not be posted: {failure}")
                if back_off.failures == 0:
                    say(f"{self.id}: nobody takes the result, trying again ({failure})")
                back_off.wait(self.agent.hurried)

    def run(self):
        keeper = threading.Thread(target=self.keep, daemon=True)
        keeper.start()
        try:
            outcome = {"status": "succeeded", "result": TASKS[self.task](self.payload, self)}
        except Exception as failure:
            outcome = self.outcome_of(failure)
        try:
            self.report()
        except NoLeader:
            pass
        if outcome is not None:
            self.post(**outcome)
        self.settled.set()
        keeper.join()

    def outcome_of(self, failure):
        """None when there is nothing to say, because the job is somebody else's."""
        if self.why == "lease_lost":
            return say(f"{self.id}: the lease is lost")
        if self.why == "drain":
            return {"status": "released"}
        if self.why == "cancelled":
            return {"status": "cancelled"}
        error = {
            "message": f"{type(failure).__name__}: {failure}",
            "code": "TIMEOUT" if self.why == "timeout" else "ERROR",
            "stack": traceback.format_exc(limit=5),
            "retryable": not isinstance(failure, Permanent),
        }
        return {"status": "failed", "error": error}


# ---------------------------------------------------------------- the agent


class Agent:
    def __init__(self, name, urls, drain_seconds, token=None):
        self.name = name
        self.cluster = Cluster(urls, token)
        self.drain_seconds = drain_seconds
        self.stopping = threading.Event()
        self.hurried = threading.Event()
        self.job = None
        self.unanswered = []

    def run(self):
        say(f"{self.name} runs {', '.join(TASKS)}")
        threading.Thread(target=self.beat, daemon=True).start()
        back_off = BackOff()
        while not self.stopping.is_set():
            try:
                lease = self.lease()
            except NoLeader as failure:
                if back_off.failures == 0:
                    say(f"no leader, trying again ({failure})")
                back_off.wait(self.stopping)
                continue
            back_off.failures = 0
            for task in lease["tasks"] if lease else ():
                self.job = Job(self, lease, task)
                if self.stopping.is_set():
                    self.job.post("released")
                else:
                    self.job.run()
                self.job = None
        say("stopped")

    def lease(self):
        """A lease on one job, or None when there was nothing to do for a while."""
        request_id = uuid.uuid4().hex
        body = {
            "agent": self.name,
            "capabilities": list(TASKS),
            "max_tasks": 1,
            "timeout_ms": POLL_MS,
            "version": VERSION,
            "request_id": request_id,
            "unanswered": self.unanswered[-32:],
        }
        # The call waits on a thread of its own: a signal must not wait with it for the end of a poll.
        answers = []

        def ask():
            try:
                answers.append(self.cluster.post("/v1/leases", body, POLL_MS / 1000 + CALL_SECONDS))
            except NoLeader as failure:
                answers.append(failure)

        poll = threading.Thread(target=ask, daemon=True)
        poll.start()
        while poll.is_alive() and not self.stopping.is_set():
            poll.join(0.1)
        if not answers:
            return None  # the connection ends with the process, and the leader takes back what nobody waits for
        if isinstance(answers[0], NoLeader):
            # Somebody may have leased us a job and died with the answer: whoever leads next puts it back.
            self.unanswered.append(request_id)
            raise answers[0]
        status, answer = answers[0]
        self.unanswered.clear()
        if status == 204:
            return None
        if status != 200:
            raise NoLeader(f"no lease: {status} {answer}")
        return answer

    def beat(self):
        """Says that we are here, and looks for nodes that we do not know."""
        while not self.hurried.wait(5):
            try:
                body = {"agent": self.name, "capabilities": list(TASKS), "running": int(self.job is not None)}
                self.cluster.post("/v1/agents/heartbeat", body, 3)
                self.cluster.learn()
            except NoLeader:
                pass

    def stop(self, number, _frame):
        """The first signal: finish what runs, for a while. The second: now."""
        say(f"{signal.Signals(number).name}: {'stopping now' if self.stopping.is_set() else 'finishing what runs'}")
        if self.stopping.is_set():
            self.hurry()
        else:
            self.stopping.set()
            timer = threading.Timer(self.drain_seconds, self.hurry)
            timer.daemon = True
            timer.start()

    def hurry(self):
        self.hurried.set()
        if self.job:
            self.job.stop("drain")


def token_of(options):
    """What to show to the nodes: --token, BATON_TOKEN, or the file that BATON_TOKEN_FILE names."""
    path = os.environ.get("BATON_TOKEN_FILE")
    if options.token or os.environ.get("BATON_TOKEN") or not path:
        return options.token or os.environ.get("BATON_TOKEN")
    with open(path) as file:
        return file.read().strip()


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description="An agent for Baton, standard library only.")
    parser.add_argument("--url", default="http://127.0.0.1:8420", help="URLs of some nodes, with commas between them")
    parser.add_argument("--name", default=f"{socket.gethostname()}-python")
    parser.add_argument("--drain-seconds", type=float, default=20, help="how long a stop waits for what runs")
    parser.add_argument("--token", help="token to show to the nodes (BATON_TOKEN, BATON_TOKEN_FILE)")
    options = parser.parse_args()
    agent = Agent(options.name, options.url.split(","), options.drain_seconds, token_of(options))
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, agent.stop)
    agent.run()


if __name__ == "__main__":
    main()
