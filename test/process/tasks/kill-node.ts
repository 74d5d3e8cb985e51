/** A poison job: whoever runs it dies. */
export default function killNode(): void {
  process.kill(process.pid, "SIGKILL");
}
