// What godex does not do yet, by what it waits for. Such tests run, and may fail. Whoever makes it takes the line out:
// then they may not any more. The file goes with its last line.
export const PENDING = {
  compaction: "answers to compaction_trigger",
  catalogCommand: "`godex codex catalog`",
};
