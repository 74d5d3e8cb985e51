/** For schedules. */
export default function tick(): void {}
