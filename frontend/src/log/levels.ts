// How grave a line is, by the rules of the server's `yardmaster.logs.levels`: both are tested with the same lines.
import { isNoise } from "./noise";

export type Level = "error" | "warning" | "info" | "debug";

const NEAR_START = 100;
const WORD_BEFORE = String.raw`(?:[^\n]{0,80}[\s\[(|:])?`;
const WORD_AFTER = String.raw`(?=[\s\])|:,]|$)`;

function pattern(words: string, letters: string, starts = ""): RegExp {
  const forms = [
    String.raw`[${letters}]\d{4} \d\d:\d\d:\d\d`, // absl and glog
    String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [${letters}] `, // TensorFlow's C++
    `${WORD_BEFORE}(?:${words})${WORD_AFTER}`,
  ];
  if (starts) forms.push(starts);
  return new RegExp(`^(?:${forms.join("|")})`);
}

const PATTERNS: [Level, RegExp][] = [
  [
    "error",
    pattern(
      "ERROR|CRITICAL|FATAL",
      "EF",
      String.raw`Traceback \(most recent call last\):|[\w.]*(?:Error|Exception)(?::|$)|KeyboardInterrupt|Segmentation fault`,
    ),
  ],
  ["warning", pattern("WARNING|WARN", "W", String.raw`\S+:\d+: \w*Warning: `)],
  ["info", pattern("INFO|NOTICE", "I")],
  ["debug", pattern("DEBUG|TRACE", "DV")],
];
const LOOSE = /ERROR|CRITICAL|FATAL|Error|Exception|Traceback|KeyboardInterrupt|Segmentation|WARN|Warning|INFO|NOTICE|DEBUG|TRACE|^[EFWIDV]\d{4} |: [EFWIDV] /;

/** The line's level, or null where it does not say. */
export function levelOf(line: string): Level | null {
  const start = line.slice(0, 4 * NEAR_START);
  const lead = (start.includes("\x1b") ? start.replace(COLOURS, "") : start).slice(0, NEAR_START);
  if (!LOOSE.test(lead)) return null;
  for (const [level, form] of PATTERNS) if (form.test(lead)) return level !== "debug" && isNoise(line) ? "info" : level;
  return null;
}

const COLOURS = /\x1b\[[0-9;:]*m/g;
const GRAVITY: Record<Level, number> = { debug: 0, info: 1, warning: 2, error: 3 };

/** Whether the level is the wanted one or a graver one. */
export function isAtLeast(level: Level | null, wanted: Level): boolean {
  return level !== null && GRAVITY[level] >= GRAVITY[wanted];
}
