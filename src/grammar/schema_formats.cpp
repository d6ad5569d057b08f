#include "grammar/schema.h"

namespace vitrine::grammar {
namespace {

#define VT_DATE                                                                      \
  "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)" \
  "|02-(0[1-9]|1\\d|2[0-8]))"                                                        \
  "|((\\d\\d)(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)"
#define VT_TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define VT_OCTET "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define VT_LABEL "[A-Za-z0-9]{1,20}(-[A-Za-z0-9]{1,20}){0,2}"
#define VT_HOST VT_LABEL "(\\." VT_LABEL "){0,4}"
#define VT_H16 "[0-9A-Fa-f]{1,4}"

constexpr std::pair<std::string_view, const char*> kFormats[] = {
    {"date", VT_DATE},
    {"time", VT_TIME},
    {"date-time", VT_DATE "T" VT_TIME},
    {"duration",
     "P((\\d{1,4}Y(\\d{1,2}M(\\d{1,2}D)?)?|\\d{1,2}M(\\d{1,2}D)?|\\d{1,3}D)"
     "(T(\\d{1,2}H(\\d{1,2}M(\\d{1,2}S)?)?|\\d{1,2}M(\\d{1,2}S)?|\\d{1,2}S))?"
     "|T(\\d{1,2}H(\\d{1,2}M(\\d{1,2}S)?)?|\\d{1,2}M(\\d{1,2}S)?|\\d{1,2}S)|\\d{1,3}W)"},
    {"email", "[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@([a-z0-9]+\\.)+[a-z]{2,8}"},
    {"hostname", VT_HOST},
    {"ipv4", VT_OCTET "(\\." VT_OCTET "){3}"},
    {"ipv6", "(" VT_H16 ":){7}" VT_H16 "|(" VT_H16 ":){1,6}:" VT_H16 "|::(" VT_H16 ":){0,5}" VT_H16
             "|(" VT_H16 ":){1,7}:|::"},
    {"uuid", "[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"},
    {"uri",
     "[A-Za-z][A-Za-z0-9+.-]{0,20}:(//" VT_HOST "(:\\d{1,4})?(/[A-Za-z0-9._~-]{1,64}){0,16}/?"
     "|[A-Za-z0-9._~-][A-Za-z0-9._~/-]{0,127})"
     "(\\?[A-Za-z0-9._~&=+-]{0,128})?(#[A-Za-z0-9._~-]{0,64})?"},
};

}  // namespace

const char* format_pattern(std::string_view name) {
  for (const auto& [known, pattern] : kFormats)
    if (known == name) return pattern;
  return nullptr;
}

}  // namespace vitrine::grammar
