#include "cli/beam_flags.h"

#include "cli/flags.h"

namespace vitrine {
namespace {

// Without --beams they mean nothing.
constexpr const char* kOthers[] = {"--num-return", "--length-penalty", "--early-stopping",
                                   "--beam-groups", "--diversity-penalty"};

}  // namespace

void BeamFlags::add(const CommandLine& line) {
  constexpr int kMost = BeamOptions::kMostBeams;
  constexpr double kPenalty = BeamOptions::kMostPenalty;
  beams = line.option("--beams", options.beams, {1, kMost},
                      "beam search: texts that are continued side by side; nothing is drawn");
  const auto other = [&](Option option) { others.push_back(option); };
  other(line.option("--num-return", options.returned, {1, kMost}, "texts to return, the best ones")
            .show_default());
  other(line.option("--length-penalty", options.length_penalty, {-kPenalty, kPenalty},
                    "score of a text: its log probability / its length ^ this")
            .show_default());
  other(line.option("--early-stopping", early_stopping, {"true", "false", "never"},
                    "end once enough texts have ended; or once no live one is better as long as "
                    "it is now (false) or can become (never)")
            .show_default());
  other(line.option("--beam-groups", options.groups, {1, kMost},
                    "diverse groups that the beams are split into")
            .show_default());
  other(line.option("--diversity-penalty", options.diversity_penalty, {0, kPenalty},
                    "what a group pays for a token that an earlier one took in the same step")
            .show_default());
  line.option("--eos", end_ids, "token ids that end the text, instead of the model's: 3,4,5");
}

Status BeamFlags::apply(Request& request) const {
  if (!end_ids.empty()) {
    VT_TRY(request.stop_token_ids, parse_ids(end_ids, "--eos"));
    request.ignore_eos = true;
  }
  if (!given()) {
    for (std::size_t i = 0; i < others.size(); ++i)
      if (others[i].given())
        return make_error(ErrorCode::kInvalid, "{}: allowed only with --beams", kOthers[i]);
    return Ok{};
  }
  request.beams = options;
  request.choices = options.returned;
  request.beams->early_stopping = early_stopping == "true"    ? EarlyStopping::kTrue
                                  : early_stopping == "never" ? EarlyStopping::kNever
                                                              : EarlyStopping::kFalse;
  return options.check();
}

}  // namespace vitrine
