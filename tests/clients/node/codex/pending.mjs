// What godex does not do yet, by what it waits for. Such tests run, and may fail. Whoever makes it takes the line out:
// then they may not any more. The file goes with its last line.
export const PENDING = {
  compaction: "answers to compaction_trigger",
  catalogCommand: "`godex codex catalog`",
  catalogEndpoint: "GET /v1/models in Codex's shape",
  refusals: "refusals in the form that Codex does not repeat",
  olderQuota: "a quota that is used up, in the form that also the older Codex understands",
};
