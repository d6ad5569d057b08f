// Runs the real program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/files.h"

namespace vitrine::test {

struct Exit {
  int code = -1;  // negative: the signal that ended it
  std::string out, err;
  long max_rss_kib = 0;
};

// `vitrine args...` with `input` on stdin. Killed, with code -9, after a minute.
Exit vitrine(const std::vector<std::string>& args, const std::string& input = "");
// The same with --json; expects success and one document on stdout.
json::object vitrine_json(std::vector<std::string> args);
// Expects exit 1, nothing on stdout and one line on stderr with each of `parts`.
void expect_refused(const std::vector<std::string>& args, const std::vector<std::string>& parts);
// The arguments of a generation of a few ids.
std::vector<std::string> generate(const std::string& model, const std::vector<std::string>& more);

// "5,6,7"
std::string join(const std::vector<std::int32_t>& ids);
std::vector<std::int32_t> tokens_of(const json::object& answer);
std::string fixture(const std::string& name);

// Byte-level BPE with lower-case letters, a few merges and the special tokens <pad> 0, <s> 1 and
// </s> 2; a text gets <s> in front. 64 ids, fewer than the fixtures' models have.
std::string tiny_tokenizer();

}  // namespace vitrine::test
