#include "verify/verify.h"

#include <algorithm>
#include <map>
#include <random>

#include "base/check.h"

namespace vitrine::verify {
namespace {

using Streams = std::vector<std::shared_ptr<TokenStream>>;
using Answers = std::vector<Answer>;  // of the choices of a request

void run(Engine& engine) {
  while (engine.step()) {
  }
  VT_CHECK(engine.idle(), "an engine without work is not idle");
}

class Verifier {
 public:
  Verifier(std::shared_ptr<const ModelFile> file, const Options& options)
      : file_(std::move(file)),
        o_(options),
        plain_(plain_options(options.engine, options.room.context)) {
    for (int i = 0; i < o_.cases; ++i) cases_.push_back(make_case(o_.room, o_.seed, i));
    if (o_.loading) plain_.progress = o_.loading;
  }

  Result<Report> run_all() {
    report_.seed = o_.seed, report_.cases = o_.cases;
    count_work();
    {
      VT_TRY(auto engine, Engine::create(file_, plain_));
      info_ = engine->info();
      report_.backend = info_.backend_description;
      report_.exact = info_.exact;
      VT_RETURN_IF_ERROR(ask_alone(*engine));
      if (wanted("alone")) VT_RETURN_IF_ERROR(try_on(*engine, *find_condition("alone")));
    }
    for (const Condition& c : all_conditions())
      if (c.name != std::string_view("alone") && wanted(c.name)) VT_RETURN_IF_ERROR(try_one(c));
    if (wanted(kDrawn)) VT_RETURN_IF_ERROR(try_draws());
    return std::move(report_);
  }

 private:
  bool wanted(std::string_view name) const {
    return o_.only.empty() || std::find(o_.only.begin(), o_.only.end(), name) != o_.only.end();
  }
  bool compared(int number) const { return !o_.one || *o_.one == number; }
  // A case is asked with its neighbours, whether these are compared or not.
  bool asked(int number) const { return !o_.one || *o_.one / kTogether == number / kTogether; }

  void count_work() {
    std::size_t asks = 0, alone = 0;
    for (int i = 0; i < o_.cases; ++i) asks += asked(i), alone += compared(i);
    all_ = alone;
    for (const Condition& c : all_conditions())
      if (wanted(c.name)) all_ += static_cast<std::size_t>(c.rounds) * (c.single ? alone : asks);
  }
  void tell(const char* condition, std::size_t n = 1) {
    done_ = std::min(done_ + n, all_);
    if (o_.progress) o_.progress({condition, done_, all_});
  }

  Request request_of(const char* condition, int number) const {
    Request r = cases_[static_cast<std::size_t>(number)].request;
    // Neither pages nor guesses come from another group of neighbours.
    r.cache_salt += std::to_string(number / kTogether);
    // Log probabilities are all that can be compared of output where no bits are promised.
    if (!report_.exact) r.logprobs = true;
    if (o_.meddle && condition != nullptr) o_.meddle(condition, number, r);
    return r;
  }

  Result<Streams> submit(Engine& engine, Request request) {
    VT_TRY(Streams streams, engine.submit_choices(std::move(request)));
    return streams;
  }
  // Each choice by itself.
  Result<Answers> ask_single(Engine& engine, const Request& request) {
    Answers out;
    for (int c = 0; c < request.choices; ++c) {
      Request r = request;
      r.first_choice = c, r.choices = 1;
      VT_TRY(Streams streams, submit(engine, std::move(r)));
      run(engine);
      out.push_back(answer_of(*streams[0]));
    }
    return out;
  }

  Status ask_alone(Engine& engine) {
    for (int i = 0; i < o_.cases; ++i) {
      if (!compared(i)) continue;
      VT_TRY(Answers answers, ask_single(engine, request_of(nullptr, i)));
      for (const Answer& a : answers)
        if (a.reason == FinishReason::kError)
          return make_error(ErrorCode::kInvalid, "case {} ({}) fails alone: {}", i,
                            cases_[static_cast<std::size_t>(i)].what, a.error);
      expected_[i] = std::move(answers);
      tell("alone");
    }
    return Ok{};
  }

  Status try_one(const Condition& condition) {
    const char* missing = condition.missing == nullptr ? nullptr : condition.missing(plain_, info_);
    if (missing != nullptr) {
      report_.rows.push_back(
          {.condition = condition.name, .help = condition.help, .missing = missing});
      return Ok{};
    }
    VT_TRY(auto engine, Engine::create(file_, options_of(condition, plain_)));
    return try_on(*engine, condition);
  }

  Status try_on(Engine& engine, const Condition& condition) {
    Row row{.condition = condition.name, .help = condition.help};
    Happened happened;
    for (int from = 0; from < o_.cases; from += kTogether) {
      if (!asked(from)) continue;
      std::vector<int> group;
      for (int i = from; i < std::min(o_.cases, from + kTogether); ++i)
        if (!condition.only_forks || cases_[static_cast<std::size_t>(i)].request.choices > 1)
          group.push_back(i);
      // Each again at once, while the first is at work, or when all are through.
      const int rounds = condition.scattered ? 1 : condition.rounds,
                times = condition.scattered ? condition.rounds : 1;
      for (int round = 0; round < rounds; ++round) {
        VT_TRY(const auto got, ask_group(engine, condition, group, times));
        for (const auto& [i, answers] : got) {
          for (const Answer& a : answers) happened.add(a.account);
          if (compared(i)) compare(condition.name, i, answers, row);
        }
      }
      for (const int i : group) row.cases += compared(i);
    }
    const Evidence seen = condition.seen(happened, engine.options(), info_);
    row.seen = seen.text, row.happened = seen.enough;
    report_.rows.push_back(std::move(row));
    return Ok{};
  }

  // Cases and what came of them, each `times`.
  Result<std::vector<std::pair<int, Answers>>> ask_group(Engine& engine, const Condition& condition,
                                                         const std::vector<int>& group, int times) {
    std::vector<std::pair<int, Answers>> out;
    if (condition.single) {
      for (const int i : group) {
        if (!compared(i)) continue;
        VT_TRY(Answers answers, ask_single(engine, request_of(condition.name, i)));
        out.emplace_back(i, std::move(answers));
        tell(condition.name);
      }
      return out;
    }
    std::mt19937_64 random(o_.seed);
    std::vector<std::pair<int, Streams>> asked;
    for (const int i : group)
      for (int time = 0; time < times; ++time) {
        VT_TRY(Streams streams, submit(engine, request_of(condition.name, i)));
        asked.emplace_back(i, std::move(streams));
        if (!condition.together) run(engine);
        if (condition.scattered)
          for (auto steps = random() % 4; steps > 0; --steps) engine.step();
      }
    run(engine);
    for (auto& [i, streams] : asked) {
      out.emplace_back(i, Answers());
      for (auto& s : streams) out.back().second.push_back(answer_of(*s));
    }
    tell(condition.name, asked.size());
    return out;
  }

  void compare(const char* condition, int number, const Answers& got, Row& row) {
    const Answers& expected = expected_.at(number);
    for (std::size_t c = 0; c < expected.size(); ++c) {
      const auto& a = expected[c].tokens;
      const auto& b = got[c].tokens;
      row.tokens += static_cast<std::int64_t>(a.size());
      row.same += std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
      const auto text = report_.exact ? difference(expected[c], got[c])
                                      : disagreement(expected[c], got[c], kMostDistance);
      if (text) differs(row, condition, number, static_cast<int>(c), *text);
    }
  }

  void differs(Row& row, const char* condition, int number, int choice, const std::string& text) {
    if (++row.differences == 1)
      report_.differences.push_back({.condition = condition,
                                     .number = number,
                                     .choice = choice,
                                     .what = cases_[static_cast<std::size_t>(number)].what,
                                     .text = text});
  }

  // The first token after a prompt, drawn again and again, against the row of logits of the prompt alone.
  Status try_draws() {
    Row row{.condition = kDrawn, .help = fmt::format("{} draws from a row, by chi-square", kDraws)};
    EngineOptions options = plain_;
    options.sequences = kTogether, options.prefix_cache = true;
    VT_TRY(auto engine, Engine::create(file_, options));
    double most = 0;
    for (int i = 0, rows = 0; i < o_.cases && rows < kDrawnRows; ++i) {
      if (!compared(i) || expected_.at(i)[0].logits.empty()) continue;
      ++rows, ++row.cases;
      VT_TRY(const double found, draw_often(*engine, i));
      most = std::max(most, found);
      row.tokens += kDraws, row.same += kDraws;
      if (!(found <= kMostSurprise))
        differs(row, kDrawn, i, 0,
                fmt::format("chi-square is {:.1f} standard deviations too high, allowed {}", found,
                            kMostSurprise));
    }
    row.seen = fmt::format("at most {:.1f} standard deviations", most);
    row.happened = row.cases > 0;
    report_.rows.push_back(std::move(row));
    return Ok{};
  }

  Result<double> draw_often(Engine& engine, int number) {
    const Answer& alone = expected_.at(number)[0];
    std::map<std::int32_t, int> counts;
    for (int i = 0; i < kDraws / kMaxChoices; ++i) {
      Request r;
      r.prompt = cases_[static_cast<std::size_t>(number)].request.prompt;
      r.max_tokens = 1, r.choices = kMaxChoices, r.ignore_eos = true;
      r.sampling.set_seed(o_.seed + static_cast<std::uint64_t>(i));
      if (o_.meddle) o_.meddle(kDrawn, number, r);
      VT_TRY(Streams streams, submit(engine, std::move(r)));
      run(engine);
      for (auto& s : streams)
        for (const std::int32_t id : answer_of(*s).tokens) ++counts[id];
    }
    return surprise(alone.logits.rbegin()->second, counts);
  }

  std::shared_ptr<const ModelFile> file_;
  const Options& o_;
  EngineOptions plain_;
  EngineInfo info_;
  std::vector<Case> cases_;
  std::map<int, Answers> expected_;
  Report report_;
  std::size_t done_ = 0, all_ = 0;
};

}  // namespace

bool Report::ok() const {
  return std::all_of(rows.begin(), rows.end(), [](const Row& r) { return r.ok(); });
}

Status check(const Options& o) {
  const int least = least_context(o.room);
  if (o.room.context < least)
    return make_error(ErrorCode::kInvalid,
                      "a context of {} is too short for prompts over the borders of pages and {} "
                      "tokens after them; allowed are {} and more",
                      o.room.context, o.room.max_tokens, least);
  if (o.one && (*o.one < 0 || *o.one >= o.cases))
    return make_error(ErrorCode::kInvalid, "case: found {}, allowed 0 to {}", *o.one, o.cases - 1);
  for (const std::string& name : o.only)
    if (name != kDrawn && find_condition(name) == nullptr)
      return make_error(ErrorCode::kInvalid, "unknown condition '{}'", name);
  return Ok{};
}

Result<Report> verify(std::shared_ptr<const ModelFile> file, const Options& options) {
  VT_RETURN_IF_ERROR(check(options));
  return Verifier(std::move(file), options).run_all();
}

}  // namespace vitrine::verify
