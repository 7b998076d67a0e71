// The forms in which Codex offers a model to run commands and to patch files, and a task that needs both: notes are
// made, patched and read back.

import { call, say, think } from "./upstream.mjs";

const PATCH = `*** Begin Patch
*** Update File: notes.txt
@@
 first
-second
+second, "patched" with a \\ backslash
 third
*** End Patch
`;
export const PATCHED = 'first\nsecond, "patched" with a \\ backslash\nthird\n';
export const TASK = "Make the notes, patch them, and read them back.";
export const DONE = "The file says second, patched.";

const MAKE = "printf 'first\\nsecond\\nthird\\n' > notes.txt && ls";
const READ = "cat notes.txt";
const shell = (request, cmd) => call(request.tool(/^exec_command$/), { cmd });
const script = (request, source) => call(request.tool(/^exec$/), { input: source });

// Each with its three calls.
export const FORMS = {
  // Commands only: Codex looks for `apply_patch` in them.
  shell: [
    (request) => shell(request, MAKE),
    (request) => shell(request, `apply_patch <<'EOF'\n${PATCH}EOF\n`),
    (request) => shell(request, READ),
  ],
  // A tool that takes the patch as it is.
  freeform: [
    (request) => shell(request, MAKE),
    (request) => call(request.tool(/^apply_patch$/), { input: PATCH }),
    (request) => shell(request, READ),
  ],
  // One tool that runs JavaScript, in which the others are functions.
  code: [
    (request) => script(request, `text(await tools.exec_command({cmd: ${JSON.stringify(MAKE)}}));`),
    (request) => script(request, `text(await tools.apply_patch(${JSON.stringify(PATCH)}));`),
    (request) => script(request, `text(await tools.exec_command({cmd: ${JSON.stringify(READ)}}));`),
  ],
};

// The one that this request offers.
export function offeredForm({ names }) {
  const offers = (name) => names.includes(name);
  return offers("exec") ? "code" : offers("apply_patch") ? "freeform" : "shell";
}

// Does the task step by step. It can know what the file says only from what it is sent.
export function works(request) {
  const next = FORMS[offeredForm(request)][request.results.length];
  if (next !== undefined) return [think("I know what is next."), say("Now this."), next(request)];
  const last = request.results.at(-1);
  return say(/second, .*patched/.test(last) ? DONE : `I do not see it: ${last}`);
}
