// Why a request took as long as it did, in sentences made of its account, its life and the steps.
#include <algorithm>
#include <array>

#include "server/answer/life_json.h"

namespace vitrine {
namespace {

// Less than this part of a whole is not worth a sentence.
constexpr double kWorthTelling = 0.02;

bool worth(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) >= kWorthTelling * static_cast<double>(whole) && part > 0;
}

std::string times(int n) { return n == 1 ? "once" : n == 2 ? "twice" : fmt::format("{} times", n); }

std::string tokens(std::int64_t n) { return count_text(n) + (n == 1 ? " token" : " tokens"); }

class Sentences {
 public:
  Sentences(const Account& a, std::span<const LifePart> life, std::span<const StepRecord> steps,
            const Names& names)
      : a_(a), life_(life), steps_(steps), names_(names) {
    for (const LifePart& part : life) {
      total_ += part.ns;
      ns_[static_cast<int>(part.kind)] += part.ns;
    }
  }

  std::vector<std::string> take() {
    if (a_.stamps.submitted == 0) {
      out_.push_back("refused: " + a_.error);
      return std::move(out_);
    }
    before_the_queue();
    queue();
    cache();
    largest();
    sat_out();
    preempted();
    paused();
    after_the_end();
    return std::move(out_);
  }

 private:
  std::int64_t of(LifeKind kind) const { return ns_[static_cast<int>(kind)]; }

  // "1.40 s of 2.10 s to the first token", or of its life where there is none.
  std::string share(std::int64_t part) const {
    const Stamps& t = a_.stamps;
    const std::int64_t from = t.received > 0 ? t.received : t.submitted;
    if (t.first_token > 0)
      return fmt::format("{} of {} to the first token", duration_text(part),
                         duration_text(t.first_token - from));
    return fmt::format("{} of {}", duration_text(part), duration_text(total_));
  }

  void before_the_queue() {
    const std::int64_t part = of(LifeKind::kRead) + of(LifeKind::kParse) + of(LifeKind::kTemplate) +
                              of(LifeKind::kTokenize) + of(LifeKind::kCompile) +
                              of(LifeKind::kHandoff);
    if (!worth(part, to_first_token())) return;
    LifeKind most = LifeKind::kRead;
    for (LifeKind kind : {LifeKind::kParse, LifeKind::kTemplate, LifeKind::kTokenize,
                          LifeKind::kCompile, LifeKind::kHandoff})
      if (of(kind) > of(most)) most = kind;
    static constexpr const char* kWords[] = {"reading it",         "reading its fields",
                                             "the chat template",  "making tokens of its text",
                                             "compiling its form", "going from thread to thread"};
    out_.push_back(fmt::format("{}: before the queue, most of it {} ({})", share(part),
                               kWords[static_cast<int>(most)], duration_text(of(most))));
  }

  void queue() {
    if (!worth(of(LifeKind::kQueue), to_first_token())) return;
    const LifePart* most = nullptr;  // what it waited for longest
    std::int64_t from = INT64_MAX, to = 0;
    for (const LifePart& part : life_) {
      if (part.kind != LifeKind::kQueue) continue;
      if (most == nullptr || part.ns > most->ns) most = &part;
      from = std::min(from, part.start), to = std::max(to, part.start + part.ns);
    }
    std::string text = fmt::format("{}: queued {}", share(of(LifeKind::kQueue)), waited_for(*most));
    out_.push_back(text + went_to(from, to));
  }

  // Whose the steps were in that time: the longest prefill or decode, and how many others there were.
  std::string went_to(std::int64_t from, std::int64_t to) const {
    std::string out;
    int others = 0;
    for (const Ran& ran : ran_between(steps_, from, to)) {
      if (names_.hides(ran.sequence) || ran.sequence == a_.id || ran.ns() == 0) continue;
      if (!out.empty()) {
        ++others;
        continue;
      }
      const bool prefill = ran.prefill_ns > ran.decode_ns;
      out = fmt::format("; {} of it were {}'s {} of {}",
                        duration_text(prefill ? ran.prefill_ns : ran.decode_ns),
                        names_.text(ran.sequence), prefill ? "prefill" : "decode",
                        tokens(prefill ? ran.prefilled : ran.decoded));
    }
    if (others > 0) out += fmt::format(", beside {} {}", others, others == 1 ? "other" : "others");
    return out;
  }

  std::string waited_for(const LifePart& part) const {
    switch (part.cause) {
      case LifeCause::kSeats:
        return "for a seat";
      case LifeCause::kPages:
        if (a_.queue.needed > 0 && names_.sees_all())
          return fmt::format("for pages: it needed {}, {} were there", count_text(a_.queue.needed),
                             count_text(a_.queue.available));
        return "for pages";
      case LifeCause::kPolicy:
        return "for its batch: the policy is static";
      case LifeCause::kBehind:
        return "behind " + names_.text(part.by);
      case LifeCause::kPrompt:
        return "while its first choice computed the prompt";
      default:
        return "until the step at work had ended";
    }
  }

  void cache() {
    const CacheAccount& c = a_.cache;
    if (a_.steps == 0 || c.possible == 0) return;
    std::string text = fmt::format("cache: {} of {} possible tokens", count_text(c.cached),
                                   count_text(c.possible));
    switch (c.miss) {
      case CacheMiss::kNone:
        break;
      case CacheMiss::kNew:
        text += "; no earlier request went on like this";
        break;
      case CacheMiss::kDiffers:
        text += fmt::format("; token {} is another one than in the nearest earlier request",
                            count_text(c.position));
        break;
      case CacheMiss::kEvicted:
        text += "; what followed had to make room";
        break;
      case CacheMiss::kWindow:
        text += "; a sliding window before that is no longer held";
        break;
      case CacheMiss::kBypassed:
        text += "; it was not asked, because every row is wanted or there is none";
        break;
    }
    out_.push_back(std::move(text));
  }

  void largest() {
    const std::int64_t prefill = of(LifeKind::kPrefill), decode = of(LifeKind::kDecode);
    const int computed = a_.usage.prompt_tokens - a_.usage.cached_tokens;
    if (worth(prefill, total_) && a_.timings.prefill_steps > 0)
      out_.push_back(fmt::format("prefill: {} in {}, {} {}", tokens(computed),
                                 duration_text(prefill), count_text(a_.timings.prefill_steps),
                                 a_.timings.prefill_steps == 1 ? "step" : "steps"));
    const int decoded = a_.timings.decode_steps;
    if (worth(decode, total_) && decoded > 0)
      out_.push_back(fmt::format("decode: {} in {}, {} each", tokens(decoded),
                                 duration_text(decode), duration_text(decode / decoded)));
  }

  void sat_out() {
    if (!worth(of(LifeKind::kSatOut), total_)) return;
    std::int64_t by_cause[4] = {};
    for (const LifePart& part : life_)
      if (part.kind == LifeKind::kSatOut)
        by_cause[part.cause == LifeCause::kHost    ? 1
                 : part.cause == LifeCause::kPages ? 2
                 : part.cause == LifeCause::kBeams ? 3
                                                   : 0] += part.ns;
    static constexpr const char* kWords[] = {
        "the steps had no room for its rows", "the host drew its tokens",
        "there was no page for its rows", "it waited for the other beams of its request"};
    const auto most = std::max_element(std::begin(by_cause), std::end(by_cause)) - by_cause;
    out_.push_back(fmt::format("{} it had a seat and sat out: {}",
                               duration_text(of(LifeKind::kSatOut)), kWords[most]));
  }

  void preempted() {
    if (a_.preemptions == 0) return;
    std::vector<std::string> by;
    for (const LifePart& part : life_)
      if (part.kind == LifeKind::kPreempted && part.by != 0)
        if (std::string name = names_.text(part.by);
            std::find(by.begin(), by.end(), name) == by.end())
          by.push_back(std::move(name));
    std::string text = "preempted " + times(a_.preemptions);
    if (!by.empty()) text += fmt::format(" by {}{}", by[0], by.size() > 1 ? " and others" : "");
    if (const std::int64_t ns = of(LifeKind::kPreempted); ns > 0)
      text += fmt::format(" for {}", duration_text(ns));
    if (a_.recomputed_tokens > 0)
      text += fmt::format(", {} computed again", tokens(a_.recomputed_tokens));
    out_.push_back(std::move(text));
  }

  void paused() {
    if (!worth(of(LifeKind::kPaused), total_)) return;
    bool held = false;
    for (const LifePart& part : life_)
      held |= part.kind == LifeKind::kPaused && part.cause == LifeCause::kHeld;
    out_.push_back(fmt::format("paused for {}: {}", duration_text(of(LifeKind::kPaused)),
                               held ? "its reader held it" : "its reader was behind"));
  }

  void after_the_end() {
    if (worth(of(LifeKind::kBetween), total_))
      out_.push_back(fmt::format("{} it had a seat and no step was at work",
                                 duration_text(of(LifeKind::kBetween))));
    if (worth(of(LifeKind::kWrite), total_))
      out_.push_back(fmt::format("{} from its end to its answer's last byte",
                                 duration_text(of(LifeKind::kWrite))));
  }

  std::int64_t to_first_token() const {
    const Stamps& t = a_.stamps;
    const std::int64_t from = t.received > 0 ? t.received : t.submitted;
    return t.first_token > 0 ? t.first_token - from : total_;
  }

  const Account& a_;
  std::span<const LifePart> life_;
  std::span<const StepRecord> steps_;
  const Names& names_;
  std::array<std::int64_t, kLifeKinds> ns_{};
  std::int64_t total_ = 0;
  std::vector<std::string> out_;
};

}  // namespace

std::string duration_text(std::int64_t ns) {
  const auto x = static_cast<double>(ns);
  if (ns >= 1'000'000'000) return fmt::format("{:.2f} s", x / 1e9);
  if (ns >= 100'000'000) return fmt::format("{:.0f} ms", x / 1e6);
  if (ns >= 1'000'000) return fmt::format("{:.1f} ms", x / 1e6);
  return fmt::format("{:.0f} µs", x / 1e3);
}

std::string count_text(std::int64_t number) {
  std::string out = fmt::format("{}", number);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    out.insert(static_cast<std::size_t>(at), 1, ',');
  return out;
}

std::vector<std::string> why(const Account& account, std::span<const LifePart> life,
                             std::span<const StepRecord> queue_steps, const Names& names) {
  return Sentences(account, life, queue_steps, names).take();
}

}  // namespace vitrine
