// vitrine verify: what it says of machines that keep what is promised, and of one that does not.
#include "verify/verify.h"

#include "cli/program.h"
#include "cli/verification.h"

namespace vitrine::test {
namespace {

using ::testing::HasSubstr;

const json::object& named(const json::object& report, std::string_view what) {
  for (const json::value& row : report.at("conditions").as_array())
    if (row.at("what").as_string() == what) return row.as_object();
  ADD_FAILURE() << "no " << what;
  return report;
}

// The models of the fixtures: attention with and without windows, several kinds of positions.
TEST(Verify, HoldsOnModelsOfAllKinds) {
  for (const char* model : {"llama", "gemma3", "gpt2", "mistral", "phi3-longrope-long"}) {
    json::object report = vitrine_json({"verify", fixture(model), "--cases", "16"});
    EXPECT_TRUE(report.at("ok").as_bool()) << model;
    EXPECT_TRUE(report.at("bits_promised").as_bool());
    EXPECT_TRUE(report.at("differences").as_array().empty());
    EXPECT_EQ(report.at("conditions").as_array().size(), verify::all_conditions().size() + 1);
    for (const json::value& row : report.at("conditions").as_array()) {
      if (row.at("what") == "draft") continue;  // none is given
      EXPECT_TRUE(row.at("happened").as_bool()) << model << to_json(row);
      EXPECT_GT(row.at("tokens").as_int64(), 0) << to_json(row);
    }
  }
}

TEST(Verify, PrintsATable) {
  Exit e = vitrine({"verify", fixture("llama"), "--cases", "16", "--only", "batched", "--only",
                    "forked", "--threads", "1", "--kv-type", "bf16", "--page-size", "16"});
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_EQ(e.err, "");
  for (const char* part : {"what ", "cases", "tokens", "differences", "batched ", "forked ",
                           "promised: the same tokens and the same bits", "All as promised."})
    EXPECT_THAT(e.out, HasSubstr(part));
  EXPECT_THAT(e.out, testing::Not(HasSubstr("preempted")));
}

// On an engine that breaks the promise, as far as a request of another seed tells: the exit status, and a command that
// asks the same again, which the program understands.
TEST(Verify, AFaultIsReportedWithACommandThatRepeatsIt) {
  auto file = ModelFile::open(fixture("llama"));
  ASSERT_TRUE(file.ok());
  verify::Options o;
  o.engine.threads = 1;
  o.room = {
      .vocab = 96, .context = 128, .max_tokens = 16, .page_size = 32, .chunk = verify::kChunk};
  o.cases = 16, o.seed = 5, o.only = {"chunked"};
  o.meddle = [](const char*, int number, Request& r) {
    if (number == 2) r.sampling.set_seed(1);
  };
  auto report = verify::verify(std::shared_ptr<const ModelFile>(std::move(file).value()), o);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(exit_code(*report), 1);
  const std::string replay =
      "vitrine verify " + fixture("llama") + " --seed 5 --cases 16 --max-tokens 16";
  const std::string text = report_text(*report, replay);
  EXPECT_THAT(text, HasSubstr("NOT as promised"));
  EXPECT_THAT(text, HasSubstr("chunked: case 2 ("));
  EXPECT_THAT(text, HasSubstr("again: " + replay + " --only chunked --case 2\n"));
  const json::object found = report_json(*report, replay);
  EXPECT_FALSE(found.at("ok").as_bool());
  EXPECT_GE(named(found, "chunked").at("differences").as_int64(), 1);
  const json::value& first = found.at("differences").at(0);
  EXPECT_EQ(first.at("case").to_number<int>(), 2);
  EXPECT_THAT(std::string(first.at("text").as_string()), HasSubstr(", alone "));
  // The real engine has no such fault: the same case is compared, and nothing else.
  std::istringstream words{std::string(first.at("replay").as_string())};
  std::vector<std::string> args;
  for (std::string word; words >> word;) args.push_back(word);
  args.erase(args.begin());
  json::object again = vitrine_json(args);
  EXPECT_EQ(named(again, "chunked").at("cases").to_number<int>(), 1);
  EXPECT_TRUE(again.at("ok").as_bool());
}

TEST(Verify, RefusesByName) {
  const std::string model = fixture("llama");
  expect_refused({"verify", model, "--sequences", "4"}, {"--sequences"});
  expect_refused({"verify", model, "--spec", "ngram"}, {"--spec"});
  expect_refused({"verify", model, "--ctx", "64"}, {"context of 64"});
  expect_refused({"verify", model, "--case", "40"}, {"case", "40", "0 to 31"});
  expect_refused({"verify", "no/such"}, {"no/such"});
  EXPECT_EQ(vitrine({"verify", model, "--only", "sideways"}).code, 2);
  EXPECT_EQ(vitrine({"verify", model, "--cases", "1"}).code, 2);
  EXPECT_EQ(vitrine({"verify"}).code, 2);
}

}  // namespace
}  // namespace vitrine::test
