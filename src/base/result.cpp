#include "base/result.h"

namespace vitrine {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kMalformed:
      return "malformed";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kTooLarge:
      return "too large";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kBusy:
      return "busy";
  }
  return "unknown";
}

}  // namespace vitrine
