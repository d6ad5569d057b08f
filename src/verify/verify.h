// What this project promises of an engine, tried out with a model on this machine: a request gives the same tokens and
// the same bits whatever happens around it. Requests of all kinds are asked one at a time of a plain engine, and again
// under one condition after the other (conditions.h). Where a backend promises no bits, distributions are compared
// instead, and draws with the distribution that they come from.
//
// Engines are made one after the other, each with the model's weights of its own, and stepped by the caller's thread, so
// that a case can be run again as it was.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "verify/cases.h"
#include "verify/conditions.h"

namespace vitrine::verify {

// The parts of `drawn`: the draws themselves.
inline constexpr const char* kDrawn = "drawn";
inline constexpr int kDraws = 2048;         // of a row
inline constexpr int kDrawnRows = 2;        // rows that are drawn from
inline constexpr double kMostSurprise = 5;  // standard deviations
// How far a distribution may be from the one of the request alone, in total variation, where no bits are promised.
inline constexpr double kMostDistance = 0.05;

struct Progress {
  const char* condition;
  std::size_t done, all;  // answers, over all conditions
};

struct Options {
  EngineOptions engine;  // what shall be verified: backend, threads, types
  CaseRoom room;         // its context is that of the engines
  std::uint64_t seed = 1;
  int cases = 32;
  std::vector<std::string> only = {};  // names of conditions, kDrawn; empty: all
  std::optional<int> one = {};         // the only case to be compared, among the same neighbours
  std::function<void(const Progress&)> progress = {};
  std::function<void(std::int64_t bytes)> loading = {};  // EngineOptions::progress
  // For tests: the request that `condition` is asked, which may be changed.
  std::function<void(const char* condition, int number, Request& request)> meddle = {};
};

struct Difference {
  std::string condition;
  int number = 0, choice = 0;
  std::string what;  // the case
  std::string text;  // what differs
};

struct Row {
  std::string condition = {}, help = {};
  int cases = 0;             // requests that were compared
  std::int64_t tokens = 0;   // of their answers
  std::int64_t same = 0;     // of these, those before the first that is not the same
  int differences = 0;       // answers that are not what they should be
  std::string seen = {};     // what happened, in words
  std::string missing = {};  // why it cannot be tried here; empty: it was
  bool happened = true;      // the condition came about
  bool ok() const { return !missing.empty() || (happened && differences == 0); }
};

struct Report {
  std::string backend;
  bool exact = true;  // bits are promised
  std::uint64_t seed = 0;
  int cases = 0;
  std::vector<Row> rows;
  std::vector<Difference> differences;  // the first of each condition
  bool ok() const;
};

Status check(const Options& options);
// An error where there is nothing to compare: no engine, or a case that fails alone.
Result<Report> verify(std::shared_ptr<const ModelFile> file, const Options& options);

}  // namespace vitrine::verify
