// What a request may hold, beside the engine's own limits (engine/request.h), the sampler's and the
// tokenizer's (SamplingParams, StopStrings), and the size of the body (HttpOptions).
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/request.h"

namespace vitrine {

// Both endpoints that generate.
inline constexpr std::size_t kMaxAnswers = kMaxChoices;  // prompts times choices
inline constexpr std::size_t kMaxSamplers = 64;
inline constexpr std::size_t kMaxStopTokens = 1024;

// Chats.
inline constexpr std::size_t kMaxMessages = 10000;
inline constexpr std::size_t kMaxTools = 1024;
inline constexpr std::size_t kMaxToolCalls = 1024;      // of a message
inline constexpr std::size_t kMaxToolName = 256;        // bytes
inline constexpr std::size_t kMaxEffortBytes = 64;      // of reasoning_effort
inline constexpr std::size_t kMaxTemplateNames = 1000;  // of chat_template_kwargs
inline constexpr std::size_t kMaxTemplateValues =
    200000;  // of that, or of all tools: with all inside
inline constexpr std::size_t kMaxModalities = 16;
inline constexpr std::uint64_t kMaxCallsOfAnswer = 16;  // that a constrained answer can have

inline constexpr std::size_t kMaxPredictionParts = 10000, kMaxPredictionBytes = 4 << 20;

// Embeddings.
inline constexpr std::size_t kMaxInputs = 2048;

// Company (endpoints/lab_company.cpp).
inline constexpr int kMostCompanyRequests = 512, kMostCompanyTokens = 256;
inline constexpr std::size_t kMostCompanyPrompt = 4096;  // bytes

// All.
inline constexpr std::size_t kMaxSaltBytes = 256;
inline constexpr double kMaxTimeoutSeconds = 1e6;

}  // namespace vitrine
