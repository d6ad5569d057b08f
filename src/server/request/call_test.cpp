#include "server/request/call.h"

#include <gmock/gmock.h>

#include <random>

#include "server/api_testing.h"
#include "server/request/limits.h"

namespace vitrine {
namespace {

class OpenaiRequest : public ::testing::Test {
 protected:
  OpenaiRequest() {
    api.tokenizer = tokenizer.get();
    api.chat = chat_template.get();
    api.model_name = "tiny";
    api.vocab = test::kVocab;
    api.context = 64;
    EXPECT_TRUE(api.defaults.set("temperature", 0.5).ok());
    EXPECT_TRUE(api.defaults.set("top_k", 7).ok());
  }

  ParsedCall completion(const std::string& fields) {
    http.body = R"({"prompt":"abc")" + (fields.empty() ? "" : "," + fields) + "}";
    return read_call(api, http, kCompletions.read);
  }
  ParsedCall chat(const std::string& fields) {
    http.body = R"({"messages":[{"role":"user","content":"hi"}])" +
                (fields.empty() ? "" : "," + fields) + "}";
    return read_call(api, http, kChatCompletions.read);
  }
  ParsedCall prompt(const std::string& value, const std::string& fields = "") {
    http.body = fmt::format(R"({{"prompt":{}{}{}}})", value, fields.empty() ? "" : ",", fields);
    return read_call(api, http, kCompletions.read);
  }
  static std::string message(const ParsedCall& parsed) {
    return parsed.error ? parsed.error->message : "";
  }

  std::unique_ptr<Tokenizer> tokenizer = test::tiny_tokenizer();
  std::unique_ptr<ChatTemplate> chat_template = ChatTemplate::chatml(*tokenizer);
  Api api;
  HttpRequest http;
};

TEST_F(OpenaiRequest, DefaultsOfBothEndpoints) {
  ParsedCall c = completion("");
  ASSERT_FALSE(c.error) << c.error->message;
  EXPECT_EQ(c.call.prompts, (std::vector<std::vector<std::int32_t>>{{0, 4, 5, 6}}));
  EXPECT_EQ(c.call.request.max_tokens, 16);
  EXPECT_EQ(c.call.request.choices, 1);
  EXPECT_FALSE(c.call.request.logprobs || c.call.request.prompt_logprobs || c.call.stream);
  EXPECT_EQ(c.call.request.max_backlog, 0);
  EXPECT_EQ(c.call.request.sampling.get("temperature"), 0.5);
  ParsedCall m = chat("");
  ASSERT_FALSE(m.error) << m.error->message;
  EXPECT_EQ(m.call.request.max_tokens, std::nullopt);
  EXPECT_EQ(m.call.request.stop_token_ids, (std::vector<std::int32_t>{test::kImEnd}));
}

TEST_F(OpenaiRequest, EveryFieldArrives) {
  http.id = "r1", http.tenant = "ann", http.rights.weight = 3;
  ParsedCall p = completion(
      R"("model":"tiny","max_tokens":5,"temperature":0.25,"top_p":0.5,"n":2,"stream":true,
         "stream_options":{"include_usage":true},"stop":["x","yz"],"seed":-1,"logprobs":3,
         "echo":true,"logit_bias":{"5":-100,"6":2.5},"presence_penalty":0.1,
         "frequency_penalty":0.2,"user":"u","min_p":0.1,"typical_p":0.9,
         "repetition_penalty":1.1,"priority":-3,"timeout":1.5,"ignore_eos":true,"min_tokens":2,
         "stop_token_ids":[9,8],"cache_salt":"s","speculative":false,"preset":"code","samplers":["top_k","temperature"],
         "vitrine":{"timings":true})");
  ASSERT_FALSE(p.error) << p.error->message;
  const Request& r = p.call.request;
  EXPECT_EQ(r.max_tokens, 5);
  EXPECT_EQ(r.choices, 2);
  EXPECT_EQ(r.sampling.get("temperature"), 0.25);
  EXPECT_EQ(r.sampling.get("top_p"), 0.5);
  EXPECT_EQ(r.sampling.get("top_k"), 0);  // the preset's, over the server's 7
  EXPECT_EQ(r.sampling.get("repetition_penalty"), 1.1);
  EXPECT_EQ(r.sampling.seed(), std::uint64_t(-1));
  ASSERT_EQ(r.sampling.logit_bias().entries().size(), 2u);
  EXPECT_EQ(r.sampling.logit_bias().find(6)->bias, 2.5f);
  EXPECT_STREQ(r.sampling.order()[3]->name, "top_k");
  EXPECT_TRUE(r.logprobs && r.prompt_logprobs && r.ignore_eos);
  EXPECT_EQ(r.top_logprobs, 3);
  EXPECT_EQ(r.priority, -3);
  EXPECT_FALSE(r.speculative);
  EXPECT_EQ(r.timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(r.min_tokens, 2);
  EXPECT_EQ(r.stop_token_ids, (std::vector<std::int32_t>{9, 8}));
  EXPECT_EQ(r.cache_salt, "3:anns");
  EXPECT_EQ(r.max_backlog, api.stream_backlog);
  EXPECT_EQ(r.label, "r1");
  EXPECT_EQ(r.tenant, "ann");
  EXPECT_EQ(r.weight, 3);
  EXPECT_TRUE(p.call.stream && p.call.include_usage && p.call.timings);
  EXPECT_EQ(p.call.echoes, (std::vector<std::string>{"abc"}));
  ASSERT_TRUE(p.call.stops);
  EXPECT_EQ(p.call.stops->size(), 2u);
}

TEST_F(OpenaiRequest, PredictionsAreChecked) {
  const auto predicting = [&](const std::string& prediction) {
    return chat(R"("prediction":)" + prediction);
  };
  for (
      const char* good :
      {"null", R"({"type":"content","content":"a"})", R"({"type":"content","content":""})",
       R"({"type":"content","content":[]})",
       R"({"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})"}) {
    const ParsedCall p = predicting(good);
    EXPECT_FALSE(p.error) << good << ": " << message(p);
    EXPECT_EQ(p.call.predicts, good[0] == '{');
    EXPECT_EQ(p.call.request.prediction, nullptr) << "there is no engine that guesses";
  }
  for (const auto& [bad, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"7", "prediction: found 7"},
           {"[]", "prediction: found"},
           {"{}", "prediction.type: found nothing, allowed \"content\""},
           {R"({"type":"x","content":"a"})", "prediction.type: found the string \"x\""},
           {R"({"type":"content"})", "prediction.content: found nothing"},
           {R"({"type":"content","content":1})", "prediction.content: found 1"},
           {R"({"type":"content","content":[1]})", "prediction.content[0]: found 1"},
           {R"({"type":"content","content":[{"type":"y","text":""}]})",
            "prediction.content[0].type: found the string \"y\""},
           {R"({"type":"content","content":[{"type":"text"}]})", "prediction.content[0].text"},
           {R"({"type":"content","content":"a","more":1})", "prediction.more: unknown field"}})
    EXPECT_THAT(message(predicting(bad)), ::testing::HasSubstr(why)) << bad;
  const std::string large(kMaxPredictionBytes + 1, 'a');
  EXPECT_THAT(
      message(predicting(R"({"type":"content","content":")" + large + "\"}")),
      ::testing::HasSubstr("prediction.content: found 4194305 bytes, allowed up to 4194304"));
}

TEST_F(OpenaiRequest, WordsAndListsOfSamplers) {
  ParsedCall p = completion(
      R"("bad_words":["ab","c"],"allowed_token_ids":[9,5,9],"dry_multiplier":0.8,
         "repetition_detection":{"max_pattern_size":4,"min_count":3})");
  ASSERT_FALSE(p.error) << p.error->message;
  TokenLists lists = p.call.request.sampling.lists();
  EXPECT_EQ(*lists.allowed, (std::vector<std::int32_t>{5, 9}));
  EXPECT_EQ(*lists.bad_words,
            (std::vector<std::vector<std::int32_t>>{{4, 5}, {56, 4, 5}, {6}, {56, 6}}));
  EXPECT_EQ(*lists.breakers, (std::vector<std::int32_t>{57, 58})) << "newline and colon";
  ASSERT_TRUE(p.call.request.repetition);
  EXPECT_EQ(p.call.request.repetition->least, 1);
  EXPECT_EQ(p.call.request.repetition->most, 4);
  EXPECT_EQ(p.call.request.repetition->count, 3);
  ParsedCall own = completion(R"("dry_multiplier":0.8,"dry_sequence_breakers":["z"])");
  EXPECT_EQ(*own.call.request.sampling.lists().breakers, (std::vector<std::int32_t>{29}));
  ParsedCall none = completion(R"("dry_multiplier":0.8,"dry_sequence_breakers":[])");
  EXPECT_TRUE(none.call.request.sampling.lists().breakers->empty());
  EXPECT_FALSE(completion("").call.request.sampling.has_breakers());
  EXPECT_FALSE(completion(R"("repetition_detection":{})").call.request.repetition);

  EXPECT_EQ(message(completion(R"("infill":1)")),
            "infill: the model has no token that ends a text");
  EXPECT_EQ(message(completion(R"("infill":2)")), "infill: found 2, allowed whole numbers 0 to 1");
  api.end_ids = {2};
  for (const char* asked : {R"("infill":1)", R"("preset":"infill")"}) {
    const auto texts = completion(asked).call.request.sampling.lists().texts;
    ASSERT_NE(texts, nullptr);
    EXPECT_EQ(texts->text(29), "z");
    EXPECT_EQ(texts->text(2), "") << "special";
    EXPECT_TRUE(texts->ends(2));
  }
  EXPECT_EQ(completion(R"("infill":0)").call.request.sampling.lists().texts, nullptr);

  EXPECT_EQ(message(completion(R"("bad_words":[""])")),
            "bad_words: found a string of 0 bytes, allowed 1 to 256");
  EXPECT_EQ(message(completion(R"("bad_words":["  "])")),
            "bad_words: found a string of spaces, allowed are words");
  EXPECT_EQ(message(completion(R"("allowed_token_ids":[])")),
            "allowed_token_ids: found an empty list, allowed at least one token id");
  EXPECT_TRUE(completion(R"("allowed_token_ids":[64])").error);
  EXPECT_TRUE(completion(R"("bad_words":"a")").error);
  EXPECT_TRUE(completion(R"("bad_words":[1])").error);
  EXPECT_EQ(message(completion(R"("dry_sequence_breakers":[""])")),
            "dry_sequence_breakers: found a string of 0 bytes, allowed 1 to 40");
  EXPECT_EQ(message(completion(R"("repetition_detection":{"max_pattern_size":4})")),
            "repetition_detection: found a count of 0, allowed 2 to 64");
  EXPECT_TRUE(completion(R"("repetition_detection":{"max_pattern":4})").error);
  EXPECT_TRUE(completion(R"("repetition_detection":{"max_pattern_size":1000})").error);
  api.tokenizer = nullptr;
  EXPECT_THAT(message(prompt("[5]", R"("bad_words":["a"])")),
              ::testing::HasSubstr("bad_words: the model has no tokenizer"));
  EXPECT_THAT(message(prompt("[5]", R"("infill":1)")),
              ::testing::HasSubstr("infill: the model has no tokenizer"));
}

TEST_F(OpenaiRequest, FourFormsOfPrompts) {
  using Prompts = std::vector<std::vector<std::int32_t>>;
  EXPECT_EQ(prompt("\"a\"").call.prompts, (Prompts{{0, 4}}));
  EXPECT_EQ(prompt("[4,5]").call.prompts, (Prompts{{4, 5}}));
  EXPECT_EQ(prompt(R"(["a","b"])").call.prompts, (Prompts{{0, 4}, {0, 5}}));
  EXPECT_EQ(prompt("[[4],[5,6]]").call.prompts, (Prompts{{4}, {5, 6}}));
  EXPECT_EQ(prompt("[4,5]", R"("echo":true)").call.echoes, (std::vector<std::string>{"ab"}));
  // Special tokens that a text spells are text.
  EXPECT_EQ(prompt("\"</s>\"").call.prompts[0].size(), std::string("/s").size());
}

TEST_F(OpenaiRequest, BadPrompts) {
  const std::string allowed =
      "allowed a string, a list of strings, a list of token ids or a list of such lists";
  EXPECT_EQ(message(prompt("null")), "prompt: found nothing, " + allowed);
  EXPECT_EQ(message(prompt("[]")), "prompt: found an empty list, " + allowed);
  EXPECT_EQ(message(prompt("{}")), "prompt: found an object, " + allowed);
  EXPECT_EQ(message(prompt("true")), "prompt: found true, " + allowed);
  EXPECT_EQ(message(prompt("[[]]")), "prompt: found no tokens, allowed at least one");
  EXPECT_EQ(message(prompt("[true]")), "prompt[0]: found true, " + allowed);
  EXPECT_EQ(message(prompt(R"(["a",[4]])")), "prompt[1]: found a list, " + allowed);
  EXPECT_EQ(message(prompt("[4,64]")), "prompt[1]: found 64, allowed token ids from 0 to 63");
  EXPECT_EQ(message(prompt("[[4],[-1]]")),
            "prompt[1][0]: found -1, allowed token ids from 0 to 63");
  EXPECT_EQ(message(prompt("[4,0.5]")), "prompt[1]: found 0.5, allowed token ids from 0 to 63");
  EXPECT_EQ(message(prompt("[4,\"a\"]")),
            "prompt[1]: found the string \"a\", allowed token ids from 0 to 63");
  std::string many = "[\"a\"";
  for (int i = 1; i < 65; ++i) many += ",\"a\"";
  EXPECT_EQ(message(prompt(many + "]")), "");
  EXPECT_EQ(message(prompt(many + "]", R"("n":2)")),
            "prompt: found 65 prompts, allowed up to 64 of 2 choices each");
}

TEST_F(OpenaiRequest, LengthsAgainstTheContext) {
  auto ids = [](int n) {
    std::string out = "[4";
    for (int i = 1; i < n; ++i) out += ",4";
    return out + "]";
  };
  EXPECT_EQ(message(prompt(ids(63))), "");
  ParsedCall long_one = prompt(ids(64));
  EXPECT_EQ(message(long_one),
            "prompt: found 64 tokens, allowed up to 63: the context holds 64 for prompt and answer "
            "together");
  EXPECT_EQ(long_one.error->code, "context_length_exceeded");
  EXPECT_EQ(message(prompt(ids(64), R"("max_tokens":0)")), "");
  EXPECT_TRUE(prompt(ids(65), R"("max_tokens":0)").error);
  EXPECT_EQ(completion(R"("max_tokens":1e300)").call.request.max_tokens, 64);
  EXPECT_EQ(completion(R"("max_tokens":9223372036854775808)").call.request.max_tokens, 64);
  EXPECT_EQ(chat(R"("max_tokens":3,"max_completion_tokens":4)").call.request.max_tokens, 4);
  EXPECT_EQ(message(chat(R"("max_tokens":0)")),
            "max_tokens: found 0, allowed whole numbers from 1 up");
  EXPECT_EQ(message(completion(R"("max_tokens":2,"min_tokens":3)")),
            "min_tokens: found 3, allowed up to max_tokens, which is 2");
}

TEST_F(OpenaiRequest, EveryIntegerFieldRefusesWhatIsNotOne) {
  for (const char* name :
       {"n", "max_tokens", "logprobs", "priority", "min_tokens", "best_of", "top_k"})
    for (const char* bad : {"-9223372036854775809", "1e400", "0.5", "\"1\"", "true", "[]", "{}"}) {
      ParsedCall p = completion(fmt::format(R"("{}":{})", name, bad));
      ASSERT_TRUE(p.error) << name << " " << bad;
      EXPECT_EQ(p.error->status, 400);
      EXPECT_EQ(p.error->param, name) << bad;
    }
  for (const char* name : {"n", "max_tokens", "logprobs", "min_tokens", "best_of"})
    EXPECT_TRUE(completion(fmt::format(R"("{}":-1)", name)).error) << name;
  for (const char* name : {"n", "logprobs", "priority", "min_tokens", "best_of", "top_k"})
    EXPECT_TRUE(completion(fmt::format(R"("{}":4294967296000)", name)).error) << name;
}

TEST_F(OpenaiRequest, EveryNumberFieldRefusesWhatIsNotOne) {
  std::vector<std::string> names{"timeout"};
  for (const Param* p : all_params()) names.emplace_back(p->name);
  for (const std::string& name : names)
    for (const char* bad : {"1e400", "-1e308", "1e308", "\"1\"", "true", "[]", "{}"}) {
      ParsedCall p = completion(fmt::format(R"("{}":{})", name, bad));
      ASSERT_TRUE(p.error) << name << " " << bad;
      EXPECT_EQ(p.error->param, name);
    }
  EXPECT_TRUE(completion(R"("timeout":0)").error);
  EXPECT_TRUE(completion(R"("top_p":2)").error);
  EXPECT_FALSE(completion(R"("temperature":-0.0)").error);
  EXPECT_FALSE(completion(R"("temperature":0)").error);
}

TEST_F(OpenaiRequest, LimitsOfLists) {
  auto stops = [&](int n) {
    std::string list = "[\"x\"";
    for (int i = 1; i < n; ++i) list += ",\"x\"";
    return completion("\"stop\":" + list + "]");
  };
  EXPECT_FALSE(stops(16).error);
  EXPECT_EQ(message(stops(17)), "stop: found a list of 17, allowed up to 16");
  EXPECT_TRUE(completion(R"("stop":"")").error);
  EXPECT_TRUE(completion(R"("stop":[""])").error);
  EXPECT_EQ(message(completion(R"("stop":5)")),
            "stop: found 5, allowed a string or a list of strings");
  EXPECT_FALSE(completion(R"("stop":[])").error);
  EXPECT_FALSE(completion("\"stop\":\"" + std::string(1024, 'x') + "\"").error);
  EXPECT_TRUE(completion("\"stop\":\"" + std::string(1025, 'x') + "\"").error);
  EXPECT_FALSE(completion("\"cache_salt\":\"" + std::string(256, 'x') + "\"").error);
  EXPECT_TRUE(completion("\"cache_salt\":\"" + std::string(257, 'x') + "\"").error);
  EXPECT_FALSE(completion(R"("n":128)").error);
  EXPECT_TRUE(completion(R"("n":129)").error);
  EXPECT_FALSE(completion(R"("logprobs":20)").error);
  EXPECT_TRUE(completion(R"("logprobs":21)").error);
  for (const char* bias : {R"({"a":1})", R"({"-1":1})", R"({"5":101})", R"({"5":1e308})",
                           R"({"64":1})", R"({"5":"x"})", R"({"5":null})", "[]", R"({"5.0":1})"}) {
    ParsedCall p = completion(fmt::format("\"logit_bias\":{}", bias));
    ASSERT_TRUE(p.error) << bias;
    EXPECT_TRUE(p.error->param.starts_with("logit_bias")) << bias;
  }
  std::string huge = "{\"0\":1";
  for (int i = 1; i < 1025; ++i) huge += fmt::format(",\"{}\":1", i);
  EXPECT_EQ(message(completion("\"logit_bias\":" + huge + "}")),
            "logit_bias: found 1025 entries, allowed up to 1024");
}

TEST_F(OpenaiRequest, ModelsByName) {
  EXPECT_FALSE(completion(R"("model":"tiny")").error);
  EXPECT_FALSE(completion(R"("model":null)").error);
  ParsedCall other = completion(R"("model":"../../etc/passwd")");
  ASSERT_TRUE(other.error);
  EXPECT_EQ(other.error->status, 404);
  EXPECT_EQ(other.error->code, "model_not_found");
  EXPECT_EQ(other.error->param, "model");
}

TEST_F(OpenaiRequest, WhatIsNotSupportedIsSaid) {
  for (const char* fields : {R"("functions":[{}])", R"("function_call":"auto")",
                             R"("modalities":["text","audio"])", R"("audio":{"voice":"x"})"}) {
    ParsedCall p = chat(fields);
    ASSERT_TRUE(p.error) << fields;
    EXPECT_EQ(p.error->code, "unsupported_parameter") << fields;
  }
  for (const char* fields :
       {R"("tools":[])", R"("tool_choice":"none")", R"("modalities":["text"])",
        R"("response_format":{"type":"text"})", R"("user":"x","metadata":{"a":"b"})",
        R"("store":true,"service_tier":"auto","parallel_tool_calls":true)"})
    EXPECT_EQ(message(chat(fields)), "") << fields;
  EXPECT_TRUE(completion(R"("suffix":"x")").error);
  EXPECT_EQ(completion(R"("best_of":3,"n":2)").call.request.choices, 3);
  EXPECT_EQ(completion(R"("best_of":3,"n":2)").call.shown, 2);
  EXPECT_EQ(message(completion(R"("best_of":2,"n":3)")),
            "best_of: found 2, allowed at least n, which is 3");
  EXPECT_TRUE(completion(R"("best_of":2,"stream":true)").error);
  EXPECT_FALSE(completion(R"("best_of":2,"n":2)").error);
  const Call beams = completion(R"("best_of":4,"n":2,"use_beam_search":true,"stream":true)").call;
  EXPECT_EQ(beams.request.choices, 2);
  EXPECT_EQ(beams.request.beams->beams, 4);
  EXPECT_EQ(beams.request.beams->returned, 2);
  EXPECT_EQ(beams.shown, 0);
  EXPECT_TRUE(beams.request.sampling.check_beams().ok());
  EXPECT_FALSE(chat(R"("use_beam_search":true,"early_stopping":"never")").error);
  EXPECT_FALSE(completion(R"("use_beam_search":false)").call.request.beams);
  EXPECT_EQ(message(completion(R"("max_completion_tokens":2)")),
            "max_completion_tokens: unknown field");
  EXPECT_EQ(message(chat(R"("temperatur":2)")),
            "temperatur: unknown field; did you mean 'temperature'?");
  EXPECT_EQ(message(chat(R"("top_logprobs":2)")),
            "top_logprobs: allowed only with \"logprobs\": true");
  EXPECT_EQ(message(chat(R"("stream_options":{"include_usage":true})")),
            "stream_options: allowed only with \"stream\": true");
  EXPECT_EQ(message(completion(R"("vitrine":{"timing":true})")),
            "vitrine.timing: unknown field; did you mean 'timings'?");
}

TEST_F(OpenaiRequest, Constraints) {
  for (
      const char* fields :
      {R"("regex":"[a-z]+")", R"("choice":["a","b"])", R"("grammar":"root ::= [a-z]+")",
       R"("response_format":{"type":"json_object"})",
       R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{}}})"}) {
    for (const ParsedCall& p : {chat(fields), completion(fields)}) {
      EXPECT_EQ(message(p), "") << fields;
      EXPECT_NE(p.call.request.constraint, nullptr) << fields;
    }
    EXPECT_EQ(chat(fields).call.request.constraint, completion(fields).call.request.constraint);
  }
  EXPECT_EQ(chat(R"("response_format":{"type":"text"},"regex":null)").call.request.constraint,
            nullptr);
  const std::pair<const char*, const char*> wrong[] = {
      {R"("response_format":{})", "response_format.type"},
      {R"("response_format":{"type":"yaml"})", "response_format.type"},
      {R"("response_format":{"type":"json_object","schema":{}})", "response_format.schema"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"x"}})",
       "response_format.json_schema.schema"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{"contains":{"a":1}}}})",
       "response_format.json_schema.schema"},
      {R"("regex":"(")", "regex"},
      {R"("regex":5)", "regex"},
      {R"("choice":"a")", "choice"},
      {R"("choice":[""])", "choice"},
      {R"("grammar":"root ::= x")", "grammar"},
      {R"("regex":"a","response_format":{"type":"json_object"})", "regex"}};
  for (auto [fields, param] : wrong) {
    ParsedCall p = chat(fields);
    ASSERT_TRUE(p.error) << fields;
    EXPECT_EQ(p.error->status, 400) << fields;
    EXPECT_EQ(p.error->param, param) << fields;
    EXPECT_TRUE(p.error->message.starts_with(param)) << p.error->message;
  }
  api.tokenizer = nullptr;
  EXPECT_NE(message(completion(R"("regex":"a")")).find("no tokenizer"), std::string::npos);
}

TEST_F(OpenaiRequest, WithoutATokenizer) {
  api.tokenizer = nullptr;
  api.chat = nullptr;
  EXPECT_FALSE(prompt("[4,5]").error);
  EXPECT_EQ(message(prompt("\"a\"")),
            "prompt: found text, allowed token ids: the model has no tokenizer");
  EXPECT_EQ(chat("").error->status, 400);
  EXPECT_TRUE(prompt("[4]", R"("stop":"x")").error);
}

TEST_F(OpenaiRequest, KeysAreKeptApartUnlessToldOtherwise) {
  auto salt = [&](const char* tenant, const std::string& own) {
    http.tenant = tenant;
    return completion(R"("cache_salt":)" + to_json(json::string(own))).call.request.cache_salt;
  };
  // No salt of one key spells another's.
  for (const char* own : {"", "s", "4:anns", ":", "3:ann", "0:"})
    for (const char* other : {"", "s", "n", "ns", "4:anns", "3:ann", "0:"}) {
      EXPECT_NE(salt("ann", own), salt("anns", other)) << own << " " << other;
      EXPECT_NE(salt("ann", own), salt("", other)) << own << " " << other;
      EXPECT_EQ(salt("ann", own) == salt("ann", other), std::string(own) == other);
    }
  api.share_cache = true;
  EXPECT_EQ(salt("ann", "s"), salt("bob", "s"));
}

TEST_F(OpenaiRequest, AKeyHasAFloorOfPriority) {
  http.rights = {.is_operator = false, .min_priority = 0};
  EXPECT_EQ(completion(R"("priority":0)").call.request.priority, 0);
  EXPECT_EQ(message(completion(R"("priority":-1)")),
            "priority: found -1, allowed whole numbers from 0 to 1000");
  http.rights.min_priority = -5;
  EXPECT_EQ(completion(R"("priority":-5)").call.request.priority, -5);
  http.rights.min_priority = 3;
  EXPECT_EQ(completion("").call.request.priority, 3);
  http.rights = {};
  EXPECT_EQ(completion(R"("priority":-1000)").call.request.priority, -1000);
}

TEST_F(OpenaiRequest, ServerTimeoutIsADefault) {
  api.default_timeout = std::chrono::seconds(9);
  EXPECT_EQ(completion("").call.request.timeout, std::chrono::milliseconds(9000));
  EXPECT_EQ(completion(R"("timeout":0.0001)").call.request.timeout, std::chrono::milliseconds(1));
}

// Bodies with bytes changed, removed and doubled: an error of the client's, or a call that holds.
TEST_F(OpenaiRequest, DamagedBodiesAreAnsweredAndHoldTheLimits) {
  const std::string bodies[] = {
      R"({"prompt":[[4,5],[6]],"n":2,"stop":["a","b"],"logit_bias":{"5":1},"stream":true,
          "max_tokens":5,"logprobs":2,"echo":true,"seed":3,"samplers":["top_k"],"timeout":1.5})",
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"max_tokens":3,
          "top_logprobs":2,"logprobs":true,"stop_token_ids":[1],"vitrine":{"timings":true}})"};
  std::mt19937 rng(1);
  const std::string bytes = "{}[]\",:0123456789.-+eEtfn\\u\xff\x80 a";
  int good = 0;
  for (int i = 0; i < 40000; ++i) {
    http.body = bodies[i % 2];
    for (std::size_t edits = rng() % 4; edits > 0; --edits) {
      std::size_t at = rng() % http.body.size();
      if (rng() % 3 == 0)
        http.body.erase(at, 1 + rng() % 3);
      else if (rng() % 2 == 0)
        http.body.insert(at, http.body.substr(rng() % http.body.size(), rng() % 9));
      else
        http.body[at] = bytes[rng() % bytes.size()];
    }
    ParsedCall p = read_call(api, http, (i % 2 ? kChatCompletions : kCompletions).read);
    if (p.error) {
      EXPECT_TRUE(p.error->status == 400 || p.error->status == 404);
      EXPECT_FALSE(p.error->message.empty());
      continue;
    }
    ++good;
    const Request& r = p.call.request;
    EXPECT_LE(p.call.prompts.size() * r.choices, kMaxAnswers) << http.body;
    EXPECT_LE(r.max_tokens.value_or(0), api.context);
    EXPECT_LE(r.top_logprobs, kMaxTopLogprobs);
    for (const auto& prompt : p.call.prompts) {
      EXPECT_TRUE(!prompt.empty() && prompt.size() < 64);
      for (std::int32_t id : prompt) EXPECT_TRUE(id >= 0 && id < api.vocab);
    }
  }
  EXPECT_GT(good, 5000);
}

}  // namespace
}  // namespace vitrine
