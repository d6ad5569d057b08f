#include "cli/bench_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include "cli/output.h"
#include "tokenizer/tokenizer.h"

namespace vitrine {
namespace {

template <typename F>
double seconds(F&& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Status bench_tokenizer(const ModelFile& file, const std::string& text_file, int repeat, bool json) {
  std::ifstream in(text_file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return make_error(ErrorCode::kUnavailable, "{}: cannot be read", text_file);
  if (text.empty()) return make_error(ErrorCode::kInvalid, "{}: is empty", text_file);
  std::vector<double> load, first, again, start;
  std::size_t tokens = 0;
  std::string kind;
  int vocabulary = 0;
  for (int i = 0; i < repeat; ++i) {
    std::optional<Result<std::unique_ptr<Tokenizer>>> made;
    load.push_back(seconds([&] { made = Tokenizer::load(file); }));
    if (!made->ok()) return made->error();
    const Tokenizer& tokenizer = ***made;
    kind = tokenizer.kind();
    vocabulary = tokenizer.vocab_size();
    auto encode = [&] { tokens = tokenizer.encode(text, {.add_special = false}).size(); };
    first.push_back(seconds(encode));
    again.push_back(seconds(encode));
    start.push_back(load.back() + first.back());
  }
  auto mb_s = [&](const std::vector<double>& times) {
    return 1e-6 * static_cast<double>(text.size()) / median(times);
  };
  if (json) {
    print_json(json::object{{"tokenizer", kind},
                            {"vocabulary", vocabulary},
                            {"bytes", text.size()},
                            {"tokens", tokens},
                            {"load_ms", 1e3 * median(load)},
                            {"first_mb_s", mb_s(first)},
                            {"again_mb_s", mb_s(again)},
                            {"load_and_first_mb_s", mb_s(start)},
                            {"repeat", repeat}});
    return Ok{};
  }
  fmt::print("{}, {} tokens; {}: {} bytes, {} tokens; one thread, medians of {}\n\n", kind,
             with_commas(vocabulary), text_file,
             with_commas(static_cast<std::int64_t>(text.size())),
             with_commas(static_cast<std::int64_t>(tokens)), repeat);
  auto line = [&](const char* name, const std::vector<double>& times, bool speed) {
    fmt::print("{:<22} {:>9.2f} ms", name, 1e3 * median(times));
    if (speed) fmt::print("   {:>8.1f} MB/s", mb_s(times));
    fmt::print("\n");
  };
  line("load", load, false);
  line("the first time", first, true);
  line("again", again, true);
  line("load and first time", start, true);
  return Ok{};
}

}  // namespace vitrine
