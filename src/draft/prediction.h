// What the caller believes the answer to be ("prediction" in OpenAI's API): a file that is to be edited, a
// form that is to be filled in. The guesses are what follows in it. Where the answer leaves it, the place is
// found again by the last tokens of the answer, near the place where it was left.
#pragma once

#include <memory>
#include <vector>

#include "draft/source.h"

namespace vitrine {

class Prediction final : public DraftSource {
 public:
  // `prompt`: how many tokens come before the answer. A null text guesses nothing.
  void expect(std::shared_ptr<const std::vector<std::int32_t>> text, int prompt);

  void begin(std::string_view scope) override;
  void extend(std::span<const std::int32_t> tokens) override;
  int draft(std::span<const std::int32_t> tokens, std::span<Guess> out) override;
  std::size_t bytes() const override { return 0; }  // the text is the request's

  // How far from where it was lost a place is looked for, in tokens; how many must agree, and how many are
  // looked at.
  static constexpr int kReach = 4096, kLeast = 3, kMost = 16;

 private:
  void find(std::span<const std::int32_t> answer);

  std::shared_ptr<const std::vector<std::int32_t>> text_;
  std::size_t known_ = 0, prompt_ = 0;
  std::size_t at_ = 0;  // of the text: what comes next, if the answer goes on with it
  bool lost_ = false;
};

}  // namespace vitrine
