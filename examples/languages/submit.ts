/**
 * Identifies many texts at once: one request submits them all, and each job is waited for.
 *
 *     npm start                                     (in one terminal)
 *     npx node examples/languages/submit.ts            (in another)
 *     npx node examples/languages/submit.ts "Guten Tag" "Buenos días"
 */

import { createClient, JobFailed } from "batonjs/client";
import type identifyLanguage from "./tasks/identify-language.ts";

const SAMPLES = [
  "The early bird catches the worm.",
  "Der frühe Vogel fängt den Wurm.",
  "L'avenir appartient à ceux qui se lèvent tôt.",
  "A quien madruga, Dios le ayuda.",
  "Chi dorme non piglia pesci.",
  "早起きは三文の徳",
];

const given = process.argv.slice(2);
const texts = given.length > 0 ? given : SAMPLES;

// It is told the type of the task and loads nothing of it. The address is that of BATON_URL, or of this machine.
await using baton = createClient<[typeof identifyLanguage]>();

// All of them are taken, or none: there is no half of a batch to clean up after.
const jobs = await baton.submitMany(
  texts.map((text) => ["identify-language", { text, top: 2 }, { queue: "languages" }] as const),
);

const finished = await Promise.allSettled(jobs.map(({ id }) => baton.wait(id, { timeout: "30s" })));

for (const [index, outcome] of finished.entries()) {
  const text = texts[index];
  if (outcome.status === "rejected") {
    if (!(outcome.reason instanceof JobFailed)) throw outcome.reason;
    console.log(
      `${outcome.reason.jobStatus}  ${text}  (${outcome.reason.error?.message ?? "no reason given"})`,
    );
    continue;
  }
  const { language, reliable, scores } = outcome.value;
  const score = language === null ? 0 : (scores[language] ?? 0);
  console.log(`${language ?? "??"} ${score.toFixed(2)}${reliable ? " " : "?"}  ${text}`);
}
