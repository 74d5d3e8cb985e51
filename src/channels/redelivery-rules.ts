/** A batch that no consumer can handle must not keep the processor busy: its pauses double from here. */
const REDELIVERY_MS = 10;
const REDELIVERY_MS_MAX = 5_000;

/** The first redelivery is at once, because somebody else may do better. */
export function redeliveryDelayMs(deliveries: number): number {
  return deliveries <= 1 ? 0 : Math.min(REDELIVERY_MS * 2 ** (deliveries - 2), REDELIVERY_MS_MAX);
}
