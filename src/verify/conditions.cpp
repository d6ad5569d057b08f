#include "verify/conditions.h"

#include <algorithm>
#include <thread>

namespace vitrine::verify {
namespace {

void many(EngineOptions& o) { o.sequences = kTogether; }
// Room for one sequence and a few pages.
void cramped(EngineOptions& o) {
  many(o);
  o.kv_tokens = o.context + 2 * o.page_size;
  o.poison_pages = true;
}
void small_steps(EngineOptions& o) {
  many(o);
  o.step_tokens = kChunk;
}
void cache(EngineOptions& o) {
  many(o);
  o.prefix_cache = true;
}
void guesses(EngineOptions& o, SpecMode mode) {
  many(o);
  o.spec = mode;
  o.spec_always = true;
}
void ngram(EngineOptions& o) { guesses(o, SpecMode::kNgram); }
void suffix(EngineOptions& o) { guesses(o, SpecMode::kSuffix); }
void draft(EngineOptions& o) { guesses(o, SpecMode::kDraft); }
void other_threads(EngineOptions& o) {
  const int all = o.threads > 0 ? o.threads : static_cast<int>(std::thread::hardware_concurrency());
  o.threads = all == 1 ? 2 : 1;
}
void delayed(EngineOptions& o) {
  many(o);
  o.commit_delay = 1;
}
void everything(EngineOptions& o) {
  cramped(o);
  o.kv_tokens += 4 * o.page_size;
  o.step_tokens = 2 * kChunk;
  o.prefix_cache = true;
  o.spec = SpecMode::kAuto;
  o.spec_always = true;
}

const char* no_threads(const EngineOptions&, const EngineInfo& info) {
  return info.backend == "cpu" ? nullptr : "this backend has no threads to choose from";
}
const char* no_draft(const EngineOptions& o, const EngineInfo&) {
  return o.draft.file != nullptr ? nullptr : "no draft model is given (--draft)";
}

using H = const Happened&;
using O = const EngineOptions&;
using I = const EngineInfo&;

Evidence at_least(std::int64_t n, std::int64_t least, const char* what) {
  return {n >= least, fmt::format("{} {}", n, what)};
}
Evidence both(Evidence a, const Evidence& b) {
  return {a.enough && b.enough, a.text + ", " + b.text};
}
Evidence batched(H h) { return at_least(h.batch, 2, "sequences in a step"); }
Evidence chunked(H h) { return at_least(h.chunks, 3, "steps of a prompt"); }
Evidence preempted(H h) { return at_least(h.preemptions, 1, "preemptions"); }
Evidence forked(H h) { return at_least(h.forks, 1, "choices shared a prompt"); }
Evidence cached(H h) { return at_least(h.cached, 1, "tokens from the cache"); }
// Some right, some wrong.
Evidence guessed(H h) {
  return {h.accepted > 0 && h.accepted < h.drafted,
          fmt::format("{} guesses ({} right)", h.drafted, h.accepted)};
}

constexpr Condition kConditions[] = {
    {.name = "alone",
     .help = "one request at a time, each asked a second time",
     .seen = [](H, O, I) -> Evidence {
       return {true, "the same engine"};
     },
     .together = false,
     .single = true},
    {.name = "batched",
     .help = "eight requests side by side",
     .set = many,
     .seen = [](H h, O, I) { return batched(h); }},
    {.name = "chunked",
     .help = "prompts in steps of 24 tokens, beside what others decode",
     .set = small_steps,
     .seen = [](H h, O, I) { return chunked(h); }},
    {.name = "preempted",
     .help = "a pool of pages for little more than one sequence",
     .set = cramped,
     .seen = [](H h, O, I) { return preempted(h); }},
    {.name = "forked",
     .help = "choices that share the computed prompt",
     .set = many,
     .seen = [](H h, O, I) { return forked(h); },
     .together = false,
     .only_forks = true},
    {.name = "cached",
     .help = "each request twice, the second time from the prefix cache",
     .set = cache,
     .seen = [](H h, O, I) { return cached(h); },
     .rounds = 2},
    {.name = "ngram",
     .help = "next tokens guessed from the text so far",
     .set = ngram,
     .seen = [](H h, O, I) { return guessed(h); }},
    {.name = "suffix",
     .help = "next tokens guessed also from earlier answers, each request twice",
     .set = suffix,
     .seen = [](H h, O, I) { return guessed(h); },
     .rounds = 2},
    {.name = "draft",
     .help = "next tokens guessed by a draft model",
     .set = draft,
     .missing = no_draft,
     .seen = [](H h, O, I) { return guessed(h); }},
    {.name = "threads",
     .help = "another number of threads",
     .set = other_threads,
     .missing = no_threads,
     .seen = [](H, O o, I) -> Evidence {
       return {true, fmt::format("threads: {}", o.threads)};
     },
     .together = false,
     .single = true},
    {.name = "delayed",
     .help = "a step is committed when the next one has begun",
     .set = delayed,
     .seen =
         [](H h, O o, I) {
           return both({o.commit_delay == 1, "one step late"}, batched(h));
         }},
    {.name = "mixed",
     .help = "all of it at once, and requests come at any time",
     .set = everything,
     .seen =
         [](H h, O, I) {
           return both(both(both(both(batched(h), chunked(h)), preempted(h)), cached(h)),
                       guessed(h));
         },
     .scattered = true,
     .rounds = 2},
};

}  // namespace

void Happened::add(const Account& a) {
  batch = std::max(batch, a.batch_max);
  chunks = std::max(chunks, a.timings.prefill_steps);
  preemptions += a.preemptions;
  // The cache never has a prompt's last row.
  const bool fork = a.choice > 0 && a.usage.cached_tokens == a.usage.prompt_tokens;
  forks += fork ? 1 : 0;
  if (!fork) cached += a.usage.cached_tokens;
  drafted += a.drafted, accepted += a.accepted;
}

std::span<const Condition> all_conditions() { return kConditions; }

const Condition* find_condition(std::string_view name) {
  for (const Condition& c : kConditions)
    if (name == c.name) return &c;
  return nullptr;
}

EngineOptions plain_options(const EngineOptions& asked, int context) {
  EngineOptions o = asked;
  o.context = context;
  o.sequences = 1;
  o.kv_tokens = 0;
  o.step_tokens = std::max(asked.step_tokens, kTogether);
  o.commit_delay = 0;
  o.mixed_step_ms = 0;  // no step's size depends on the clock
  o.policy = Policy::kContinuous;
  o.prefix_cache = false;
  o.spec = SpecMode::kOff;
  o.trace_mib = 0;
  o.max_queue = EngineOptions().max_queue;  // room for a group with its choices
  return o;
}

EngineOptions options_of(const Condition& condition, const EngineOptions& plain) {
  EngineOptions o = plain;
  if (condition.set != nullptr) condition.set(o);
  return o;
}

}  // namespace vitrine::verify
