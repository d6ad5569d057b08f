#include "sampling/explain.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sampling/race.h"

namespace vitrine {
namespace {

bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Reads stages one after the other; remembers the one before for the share that was kept.
class Reader {
 public:
  explicit Reader(std::size_t vocab, std::size_t top) : before_(vocab, 0), top_(top) {}

  StageView read(const char* name, Candidates& candidates) {
    StageView out{.name = name};
    all_.clear();
    candidates.for_each([&](std::int32_t id, float logit, std::uint64_t weight) {
      if (logit > -std::numeric_limits<float>::infinity()) all_.push_back({logit, id, weight});
    });
    out.kept = all_.size();
    for (const Candidate& c : all_) out.total += c.weight;
    measure(out);
    const std::size_t shown = std::min(top_, all_.size());
    const auto cut = all_.begin() + static_cast<std::ptrdiff_t>(shown);
    std::partial_sort(all_.begin(), cut, all_.end(), better);
    out.top.assign(all_.begin(), cut);
    out.rest = all_.size() - shown;
    for (auto c = cut; c != all_.end(); ++c) out.rest_weight += c->weight;
    return out;
  }
  std::vector<Candidate> take_last() {
    std::erase_if(all_, [](const Candidate& c) { return c.weight == 0; });
    std::sort(all_.begin(), all_.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    return std::move(all_);
  }

 private:
  void measure(StageView& out) {
    double entropy = 0;
    std::uint64_t kept = 0;
    for (const Candidate& c : all_) {
      kept += before_[static_cast<std::size_t>(c.id)];
      if (c.weight > 0) entropy -= out.p(c.weight) * std::log(out.p(c.weight));
    }
    out.entropy = std::max(entropy, 0.0);
    if (total_before_ > 0)
      out.mass = static_cast<double>(kept) / static_cast<double>(total_before_);
    std::fill(before_.begin(), before_.end(), 0);
    for (const Candidate& c : all_) before_[static_cast<std::size_t>(c.id)] = c.weight;
    total_before_ = out.total;
  }

  std::vector<std::uint64_t> before_;  // weights by id
  std::uint64_t total_before_ = 0;
  std::size_t top_;
  std::vector<Candidate> all_;
};

}  // namespace

Explanation Chain::explain(std::span<const float> logits, const SamplerState& history,
                           const DrawSpec& draw, std::size_t top, Scratch& scratch,
                           bool only_last) const {
  Explanation out;
  const LogitsScan scan = scan_logits(logits);
  out.status = scan.status;
  if (out.status != LogitsStatus::kOk) return out;
  Reader reader(logits.size(), top);
  {
    Candidates model(logits, scan.max, scratch);
    out.stages.push_back(reader.read("model", model));
  }
  std::vector<float> allowed(logits.begin(), logits.end());
  float max = scan.max;
  const bool forced = draw.forced >= 0;
  if (forced || !draw.banned.empty() || draw.allowed != nullptr) {
    if (forced) {
      std::fill(allowed.begin(), allowed.end(), -std::numeric_limits<float>::infinity());
      allowed[static_cast<std::size_t>(draw.forced)] =
          logits[static_cast<std::size_t>(draw.forced)];
      // A token that the model excludes can be forced all the same.
      float& logit = allowed[static_cast<std::size_t>(draw.forced)];
      logit = std::max(logit, std::numeric_limits<float>::lowest());
    } else {
      mask_logits(logits, draw, allowed);
    }
    const LogitsScan left = scan_logits(allowed);
    out.status = left.status;
    if (out.status != LogitsStatus::kOk) return out;
    max = left.max;
    Candidates masked(allowed, max, scratch);
    out.stages.push_back(reader.read(forced ? "forced" : "mask", masked));
  }
  // The first n transforms on a fresh row, for every n.
  const std::size_t all = forced ? 0 : stages_.size();
  for (std::size_t n = only_last ? std::max<std::size_t>(all, 1) : 1; n <= all; ++n) {
    Candidates candidates(allowed, max, scratch);
    std::size_t ran = 0;
    for (; ran < n && candidates.size() > 1; ++ran)
      apply(stages_[ran], candidates, history, draw.key());
    if (ran == 0 || (ran < n && !only_last)) break;
    const Stage& stage = stages_[ran - 1];
    StageView view = reader.read(stage.def->name, candidates);
    for (std::size_t i = 0; i < stage.def->params.size(); ++i)
      if (stage.values[i] != stage.def->params[i].neutral)
        view.params.emplace_back(stage.def->params[i].name, stage.values[i]);
    out.stages.push_back(std::move(view));
  }
  out.last = reader.take_last();
  SamplerState copy = history;
  const Choice choice = sample(logits, copy, draw, scratch);
  out.status = choice.status, out.token = choice.token;
  return out;
}

std::uint64_t Explanation::weight(std::int32_t id) const {
  const auto at = std::lower_bound(last.begin(), last.end(), id,
                                   [](const Candidate& c, std::int32_t x) { return c.id < x; });
  return at != last.end() && at->id == id ? at->weight : 0;
}

std::vector<std::pair<std::int32_t, int>> draw_often(const Explanation& explanation, int draws,
                                                     DrawKey key) {
  const ManyRaces races(explanation.last);
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    ++key.seed;
    ++counts[races.race(key).id];
  }
  std::vector<std::pair<std::int32_t, int>> out(counts.begin(), counts.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace vitrine
