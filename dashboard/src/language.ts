/**
 * Must come before all else: a Chromium in the locale C calls its language `en-US@posix`, which is none, and the charts' library asks for it
 * as soon as it is loaded, so that nothing would be shown at all.
 */

try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US", configurable: true });
}
