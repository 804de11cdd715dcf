/** The validator's messages, at the lines that they name. */

export interface Problem {
  /** Counted from 1; null if the message is about the whole manifest. */
  line: number | null;
  message: string;
}

export function readProblem(text: string): Problem {
  const found = /^line (\d+): (.*)$/s.exec(text);
  return found === null ? { line: null, message: text } : { line: Number(found[1]), message: found[2] ?? "" };
}
