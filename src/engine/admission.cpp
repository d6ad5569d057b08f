#include "engine/admission.h"

#include <algorithm>

#include "base/process_clock.h"
#include "engine/fair_queue.h"
#include "engine/options.h"
#include "sampling/rng.h"

namespace vitrine {
namespace {

Status within(const char* name, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return Ok{};
  return make_error(ErrorCode::kInvalid, "{}: found {}, allowed {} to {}", name, value, min, max);
}

}  // namespace

Admission::Admission(const MemoryPlan& plan, const EngineInfo& info, const PrefixHasher& hasher,
                     std::vector<std::int32_t> eos_ids)
    : plan_(plan), info_(info), hasher_(hasher), eos_ids_(std::move(eos_ids)) {}

Status Admission::check(const Request& r) const {
  int prompt = static_cast<int>(std::min<std::size_t>(r.prompt.size(), 1 << 30));
  int vocab = info_.vocab;
  if (prompt == 0)
    return make_error(ErrorCode::kInvalid, "the prompt is empty; at least one token is needed");
  if (prompt > plan_.context || (prompt == plan_.context && r.max_tokens != 0))
    return make_error(
        ErrorCode::kTooLarge,
        "the prompt has {} tokens, the context holds {} for prompt and output together",
        r.prompt.size(), plan_.context);
  for (std::size_t i = 0; i < r.prompt.size(); ++i)
    if (r.prompt[i] < 0 || r.prompt[i] >= vocab)
      return make_error(ErrorCode::kInvalid, "prompt token {} is {}, allowed 0 to {}", i,
                        r.prompt[i], vocab - 1);
  VT_RETURN_IF_ERROR(check_begun(r));
  if (r.beams) VT_RETURN_IF_ERROR(check_beams(r));
  if (r.max_tokens && *r.max_tokens < 0)
    return make_error(ErrorCode::kInvalid, "max_tokens: found {}, allowed 0 or more",
                      *r.max_tokens);
  VT_RETURN_IF_ERROR(r.sampling.check_vocab(static_cast<std::size_t>(vocab)));
  if (r.repetition) VT_RETURN_IF_ERROR(r.repetition->check());
  for (int position : r.logit_positions)
    if (position < 0 || position >= prompt)
      return make_error(ErrorCode::kInvalid,
                        "logits of position {} were asked for, the prompt has 0 to {}", position,
                        prompt - 1);
  for (std::int32_t id : r.stop_token_ids)
    VT_RETURN_IF_ERROR(within("stop_token_ids", id, 0, vocab - 1));
  if (r.pooling && r.max_tokens != 0)
    return make_error(ErrorCode::kInvalid, "max_tokens: an embedding has no text, allowed only 0");
  VT_RETURN_IF_ERROR(within("choices", r.choices, 1, r.pooling ? 1 : kMaxChoices));
  VT_RETURN_IF_ERROR(within("first_choice", r.first_choice, 0, 1 << 30));
  if (r.allow) VT_RETURN_IF_ERROR(within("allow", *r.allow, 0, 1 << 30));
  VT_RETURN_IF_ERROR(within("top_logprobs", r.top_logprobs, 0, std::min(kMaxTopLogprobs, vocab)));
  VT_RETURN_IF_ERROR(within("min_tokens", r.min_tokens, 0, plan_.context));
  VT_RETURN_IF_ERROR(within("priority", r.priority, -kMaxPriority, kMaxPriority));
  if (!(r.weight > 0 && r.weight <= 1e6))
    return make_error(ErrorCode::kInvalid, "weight: found {}, allowed above 0 to 1e6", r.weight);
  if (r.timeout && r.timeout->count() <= 0)
    return make_error(ErrorCode::kInvalid, "timeout: found {} ms, allowed 1 or more",
                      r.timeout->count());
  return Ok{};
}

Status Admission::check_begun(const Request& r) const {
  if (r.begun.empty()) return Ok{};
  if (r.pooling) return make_error(ErrorCode::kInvalid, "begun: an embedding has no output");
  const auto length = r.prompt.size() + r.begun.size();
  if (length >= static_cast<std::size_t>(plan_.context))
    return make_error(
        ErrorCode::kTooLarge,
        "prompt and begun output have {} tokens, the context holds {} and at least one "
        "must be left",
        length, plan_.context);
  if (r.max_tokens && r.begun.size() >= static_cast<std::size_t>(std::max(*r.max_tokens, 0)))
    return make_error(ErrorCode::kInvalid,
                      "begun: found {} tokens, allowed fewer than max_tokens, which is {}",
                      r.begun.size(), *r.max_tokens);
  DrawState state(r, {}, 0, 0, eos_ids_, 0, 0);
  for (std::size_t i = 0; i < r.begun.size(); ++i) {
    const std::int32_t id = r.begun[i];
    if (id < 0 || id >= info_.vocab)
      return make_error(ErrorCode::kInvalid, "begun token {} is {}, allowed 0 to {}", i, id,
                        info_.vocab - 1);
    if (state.ends_with(id))
      return make_error(ErrorCode::kInvalid, "begun token {} is {}, which ends the text", i, id);
    if (!state.accept(id))
      return make_error(ErrorCode::kInvalid,
                        "begun token {} is {}, which the constraint does not allow there", i, id);
  }
  return Ok{};
}

Status Admission::check_beams(const Request& r) const {
  const BeamOptions& b = *r.beams;
  VT_RETURN_IF_ERROR(b.check());
  const auto refuse = [](const char* name, const char* why) {
    return make_error(ErrorCode::kInvalid, "{}: not with beam search, {}", name, why);
  };
  if (!r.begun.empty()) return refuse("begun", "whose texts begin together");
  if (r.pooling) return refuse("pooling", "which makes text");
  if (r.logprobs || r.top_logprobs > 0) return refuse("logprobs", "whose scores are of texts");
  if (r.prompt_logprobs || !r.logit_positions.empty())
    return refuse("prompt_logprobs", "whose scores are of texts");
  if (r.repetition) return refuse("repetition_detection", "which ranks texts that end by tokens");
  if (r.max_tokens == 0)
    return make_error(ErrorCode::kInvalid, "max_tokens: found 0, a beam search needs 1 or more");
  VT_RETURN_IF_ERROR(within("choices", r.choices, b.returned, b.returned));
  if (b.beams > plan_.sequences)
    return make_error(ErrorCode::kInvalid,
                      "beams: found {}, allowed 1 to {}: so many sequences run at once", b.beams,
                      plan_.sequences);
  VT_RETURN_IF_ERROR(r.sampling.check_beams());
  const auto prompt = static_cast<int>(r.prompt.size());
  const int length =
      prompt + std::min(r.max_tokens.value_or(plan_.context), plan_.context - prompt);
  for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
    const int needed = Beams::pages(plan_, g, b.beams, prompt, length);
    if (needed > plan_.groups[g].pages)
      return make_error(ErrorCode::kTooLarge,
                        "beams: {} of {} tokens after a prompt of {} need {} pages of the cache, "
                        "which has {}; fewer beams or a smaller max_tokens need less",
                        b.beams, length - prompt, prompt, needed, plan_.groups[g].pages);
  }
  return Ok{};
}

// Of the choices, which are their sequences.
void Admission::make_beams(Sequence& first) {
  const BeamOptions& options = *first.request.beams;
  auto beams = std::make_shared<Beams>(options, first.max_output);
  const auto join = [&](Sequence& s) {
    beams->all.push_back(&s);
    s.beams = beams;
    s.candidates.reserve(2 * static_cast<std::size_t>(options.candidates()));
    s.resting = &s != &first;
    s.waits_for_host = true;
    s.device_draw.reset();
  };
  join(first);
  for (auto& f : first.forks) join(*f);
  beams->live.assign(beams->search.live().size(), &first);
}

std::unique_ptr<Sequence> Admission::make(Request request) const {
  if (request.beams) {
    request.sampling = request.sampling.for_beams();
    request.speculative = false;
  }
  const std::optional<std::uint64_t> asked = request.sampling.seed();
  const std::uint64_t seed = asked ? *asked : draw_seed();
  const int choices = request.beams ? request.beams->beams : request.choices;
  std::vector<std::int32_t> prompt = std::move(request.prompt);
  std::sort(request.logit_positions.begin(), request.logit_positions.end());
  const int from = request.first_choice;
  auto first = make_choice(std::move(request), std::move(prompt), from, seed);
  hash_prompt(*first);
  for (int i = 1; i < choices; ++i) {
    auto f =
        make_choice(first->request, {first->tokens.begin(), first->tokens.begin() + first->prompt},
                    from + i, seed);
    f->root = first->root;
    f->keys.insert(f->keys.end(), first->keys.begin(), first->keys.end());
    first->forks.push_back(std::move(f));
  }
  if (first->request.beams) make_beams(*first);
  return first;
}

std::unique_ptr<Sequence> Admission::make_choice(Request request, std::vector<std::int32_t> prompt,
                                                 int choice, std::uint64_t seed) const {
  auto s = std::make_unique<Sequence>();
  const int length_of_prompt = static_cast<int>(prompt.size());
  s->max_output =
      std::min(request.max_tokens.value_or(plan_.context), plan_.context - length_of_prompt);
  static_cast<DrawState&>(*s) =
      DrawState(request, prompt, s->max_output, info_.vocab, eos_ids_, choice, seed);
  s->begun = static_cast<int>(request.begun.size());
  s->prefill_end = s->account.usage.prompt_tokens = length_of_prompt + s->begun;
  const int length = length_of_prompt + s->max_output;
  s->tokens = std::move(prompt);
  s->tokens.reserve(length);
  s->draft.reserve(kMostGuesses);
  s->keys.reserve(length / plan_.page_size);
  for (const CacheGroup& g : plan_.groups)
    s->tables.emplace_back(plan_.page_size, g.spec.window, length);

  for (std::size_t i = 0; i < request.begun.size(); ++i) {
    const float p = i < request.begun_p.size() ? request.begun_p[i] : kNoShare;
    s->follow(request.begun[i], p);  // check() has seen that it may come
    s->tokens.push_back(request.begun[i]);
  }
  s->account.choice = choice;
  s->account.parent = request.parent;
  const bool bans = request.min_tokens > 0 && !s->bans.empty();
  if (!request.logprobs && request.top_logprobs == 0 && !bans && !request.constraint &&
      !request.reasoning)
    s->device_draw = s->chain->on_device();
  s->waits_for_host = info_.queues_steps && !s->device_draw;
  if (request.pooling) s->pool = Pool(*request.pooling, info_.dim);

  s->stream = std::make_shared<TokenStream>();
  s->stream->reserve(request, length_of_prompt, s->max_output);
  if (request.pooling) s->stream->embedding_.resize(info_.dim);
  s->submitted = Clock::now();
  if (request.timeout) s->deadline = s->submitted + *request.timeout;
  s->rank = std::chrono::nanoseconds(s->submitted.time_since_epoch() +
                                     request.priority * FairQueue::kAgeing)
                .count();
  s->account.label = request.label;
  s->account.tenant = request.tenant;
  s->account.priority = request.priority;
  s->account.stamps = request.stamps;
  s->account.written = request.written;
  s->account.traceparent = request.traceparent;
  s->account.stamps.submitted = process_ns(s->submitted);
  s->account.life.begin(s->account.stamps.submitted);
  s->account.submitted_unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count();
  s->request = std::move(request);
  return s;
}

// The keys of the whole pages of what is to be computed first.
void Admission::hash_prompt(Sequence& s) const {
  const int P = plan_.page_size;
  s.root = hasher_.root(s.request.cache_salt);
  for (int i = 0; (i + 1) * P <= s.prefill_end; ++i)
    s.keys.push_back(
        hasher_.extend(i == 0 ? s.root : s.keys.back(),
                       std::span(s.tokens).subspan(static_cast<std::size_t>(i) * P, P)));
}

}  // namespace vitrine
