#include "cli/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace vitrine::test {
namespace {

void redirect(const std::string& path, int flags, int to) {
  int fd = ::open(path.c_str(), flags, 0600);
  if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
  ::close(fd);
}

// Waits for at most a minute.
int wait_for(pid_t pid, rusage& usage) {
  for (int i = 0; i < 60000; ++i) {
    int status = 0;
    pid_t done = ::wait4(pid, &status, WNOHANG, &usage);
    if (done == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ::usleep(1000);
  }
  ::kill(pid, SIGKILL);
  int status = 0;
  ::wait4(pid, &status, 0, &usage);
  return -SIGKILL;
}

}  // namespace

Exit vitrine(const std::vector<std::string>& args, const std::string& input) {
  TempFolder folder;
  folder.write("in", input);
  std::vector<std::string> words{VITRINE_BINARY};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string in = folder.path("in"), out = folder.path("out"), err = folder.path("err");
  pid_t pid = ::fork();
  VT_CHECK(pid >= 0);
  if (pid == 0) {
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Exit result;
  rusage usage{};
  result.code = wait_for(pid, usage);
  result.max_rss_kib = usage.ru_maxrss;
  result.out = read_text(out);
  result.err = read_text(err);
  return result;
}

json::object vitrine_json(std::vector<std::string> args) {
  args.push_back("--json");
  Exit e = vitrine(args);
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_EQ(e.err, "");
  EXPECT_EQ(e.out.find('\n'), e.out.size() - 1) << "more than one line";
  boost::system::error_code error;
  json::value value = json::parse(e.out, error);
  EXPECT_FALSE(error) << e.out;
  if (!value.is_object()) {
    ADD_FAILURE() << "no JSON object: " << e.out;
    return {};
  }
  return value.as_object();
}

void expect_refused(const std::vector<std::string>& args, const std::vector<std::string>& parts) {
  Exit e = vitrine(args);
  std::string trace;
  for (const std::string& arg : args) trace += arg + " ";
  SCOPED_TRACE(trace);
  EXPECT_EQ(e.code, 1) << e.err;
  EXPECT_EQ(e.out, "");
  EXPECT_THAT(e.err, ::testing::StartsWith("error: "));
  EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
  for (const std::string& part : parts) EXPECT_THAT(e.err, ::testing::HasSubstr(part));
}

std::vector<std::string> generate(const std::string& model, const std::vector<std::string>& more) {
  std::vector<std::string> args{"generate", model, "--ids", "5,6,7,8"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::string join(const std::vector<std::int32_t>& ids) {
  return fmt::format("{}", fmt::join(ids, ","));
}

std::vector<std::int32_t> tokens_of(const json::object& answer) {
  return json::value_to<std::vector<std::int32_t>>(answer.at("tokens"));
}

std::string fixture(const std::string& name) { return VT_FIXTURES "/golden/" + name; }

std::string tiny_tokenizer() {
  json::array added;
  json::object vocab;
  for (const char* special : {"<pad>", "<s>", "</s>"}) {
    added.push_back(json::object{{"id", added.size()},
                                 {"content", special},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", true}});
    vocab[special] = vocab.size();
  }
  for (const char* token : {"Ġ", ".", ",", "<", ">", "/"}) vocab[token] = vocab.size();
  for (char c = 'a'; c <= 'z'; ++c) vocab[std::string(1, c)] = vocab.size();
  // The two bytes of U+00E9, as byte-level BPE spells them.
  for (const char* token : {"Ã", "©"}) vocab[token] = vocab.size();
  json::array merges;
  for (auto [left, right] : {std::pair{"h", "e"},
                             {"l", "l"},
                             {"he", "ll"},
                             {"hell", "o"},
                             {"Ġ", "hello"},
                             {"Ġ", "w"},
                             {"o", "r"}}) {
    merges.push_back(json::array{left, right});
    vocab[std::string(left) + right] = vocab.size();
  }
  while (vocab.size() < 64) vocab[fmt::format("filler{}", vocab.size())] = vocab.size();
  json::object bos{{"SpecialToken", json::object{{"id", "<s>"}, {"type_id", 0}}}};
  json::object text{{"Sequence", json::object{{"id", "A"}, {"type_id", 0}}}};
  return json::serialize(json::object{
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       json::object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor",
       json::object{{"type", "TemplateProcessing"},
                    {"single", json::array{bos, text}},
                    {"pair", json::array{bos, text}},
                    {"special_tokens",
                     json::object{{"<s>", json::object{{"id", "<s>"},
                                                       {"ids", json::array{1}},
                                                       {"tokens", json::array{"<s>"}}}}}}}},
      {"decoder", json::object{{"type", "ByteLevel"}}},
      {"model", json::object{{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}});
}

}  // namespace vitrine::test
