/**
 * Identifies many texts at once: one request submits them all, and each job is waited for.
 *
 *     npm start                                     (in one terminal)
 *     npx node examples/langid/submit.ts            (in another)
 *     npx node examples/langid/submit.ts "Guten Tag" "Buenos días"
 */

import { BatonClient } from "batonjs/client";
import type { Identified } from "./tasks/identify-language.ts";

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

await using client = new BatonClient({ url: process.env["BATON_URL"] ?? "http://127.0.0.1:8420" });

// All of them are taken, or none: there is no half of a batch to clean up after.
const jobs = await client.submitMany(
  texts.map((text) => ({ task: "identify-language", payload: { text, top: 2 }, queue: "langid" })),
);

const finished = await Promise.all(jobs.map(({ job_id }) => client.wait(job_id, { timeoutMs: 30_000 })));

for (const [index, { job, result }] of finished.entries()) {
  const text = texts[index];
  if (job.status !== "completed") {
    console.log(`${job.status}  ${text}  (${job.error?.message ?? "no reason given"})`);
    continue;
  }
  const { language, reliable, scores } = result as Identified;
  const score = language === null ? 0 : (scores[language] ?? 0);
  console.log(`${language ?? "??"} ${score.toFixed(2)}${reliable ? " " : "?"}  ${text}`);
}
