#include "server/request/beam_fields.h"

namespace vitrine {

std::optional<BeamOptions> read_beams(JsonFields& fields, int n) {
  const bool on = fields.boolean("use_beam_search").value_or(false);
  BeamOptions out{.beams = n, .returned = n};
  const char* given = nullptr;
  const auto take = [&](const char* name, auto value, auto& to) {
    if (!value) return;
    given = name;
    to = static_cast<std::remove_reference_t<decltype(to)>>(*value);
  };
  take("beams", fields.integer("beams", 1, BeamOptions::kMostBeams), out.beams);
  take("beam_groups", fields.integer("beam_groups", 1, BeamOptions::kMostBeams), out.groups);
  take("length_penalty", fields.number("length_penalty"), out.length_penalty);
  take("diversity_penalty", fields.number("diversity_penalty"), out.diversity_penalty);
  if (const json::value* early = fields.any("early_stopping")) {
    given = "early_stopping";
    if (early->is_bool())
      out.early_stopping = early->get_bool() ? EarlyStopping::kTrue : EarlyStopping::kFalse;
    else if (early->is_string() && early->get_string() == "never")
      out.early_stopping = EarlyStopping::kNever;
    else
      fields.fail(given,
                  fmt::format("found {}, allowed true, false or \"never\"", describe(*early)));
  }
  if (!on) {
    if (given != nullptr && !fields.error())
      fields.fail(given, "allowed only with \"use_beam_search\": true");
    return std::nullopt;
  }
  return out;
}

}  // namespace vitrine
