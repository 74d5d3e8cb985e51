/** Relations between settings that no single value shows. */

import { formatDuration } from "./duration.ts";
import type { Source } from "./source.ts";
import type { SettingPath } from "./settings.ts";
import { told } from "./source.ts";
import type { Value } from "./value.ts";

interface Relation {
  readonly longer: SettingPath;
  readonly than: readonly SettingPath[];
  readonly times: number;
  readonly because: string;
}

const RELATIONS: readonly Relation[] = [
  {
    longer: "leader.lease",
    than: ["leader.renew", "leader.margin"],
    times: 1,
    because: "otherwise a leader stops trusting its lease before it renews it",
  },
  {
    longer: "worker.lease",
    than: ["worker.renew"],
    times: 2,
    because: "otherwise one late renewal loses the jobs that are running",
  },
  {
    longer: "drain.timeout",
    than: ["drain.cleanup"],
    times: 1,
    because: "otherwise handlers are told to stop before the drain begins",
  },
];

/** The broken relations, each told where one of its values was written. */
export function relationMistakes(
  values: ReadonlyMap<string, Value>,
  sources: ReadonlyMap<string, Source>,
): string[] {
  return RELATIONS.flatMap((relation) => {
    const paths = [relation.longer, ...relation.than];
    // A value that could not be read has been told about already.
    if (!paths.every((path) => values.has(path))) return [];
    const ms = (path: string): number => values.get(path) as number;
    const least = relation.than.reduce((sum, path) => sum + ms(path), 0) * relation.times;
    if (ms(relation.longer) > least) return [];

    const written = (path: string): string => `${path} (${formatDuration(ms(path))})`;
    const bound = `${relation.times === 1 ? "" : `${relation.times} × `}${relation.than.map(written).join(" + ")}`;
    const culprit = paths.find((path) => sources.get(path)?.from !== "default") ?? relation.longer;
    const mistake =
      culprit === relation.longer
        ? `(${formatDuration(ms(culprit))}) must be longer than ${bound}: ${relation.because}`
        : `(${formatDuration(ms(culprit))}) is too long: ${written(relation.longer)} must be longer than ${bound}, ${relation.because}`;
    return [told(sources.get(culprit)!, culprit, mistake)];
  });
}
