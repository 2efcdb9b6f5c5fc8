#include "core/session/compare.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/session/compare_request.h"
#include "core/session/session_differences.h"

namespace qkv {
namespace {

std::string in_quotes(std::string_view name) { return "\"" + std::string(name) + "\""; }

// What there is to compare with.
struct Ours {
  const Session& session;
  Shapes shapes;
  InputCache cache;
};

Result<Comparison> finish(Ours& ours, Comparison comparison, const StopFlag* stop) {
  Result<Diagnosis> diagnosis =
      find_causes(ours.cache, comparison.theirs, comparison.differences, comparison.tolerance, {}, stop);
  if (!diagnosis.ok()) return diagnosis.error();
  comparison.diagnosis = std::move(diagnosis).value();
  return comparison;
}

// An array whose axes are named.
Status add_laid_out(Ours& ours, Comparison& comparison, const TensorFile& file, const NamePair& pair, MatrixKind kind,
                    const StopFlag* stop) {
  const KindShape shape = *shape_of(kind, ours.session.problem, ours.shapes);
  Result<LaidOutArray> array = read_laid_out(file, pair, kind, shape, ours.shapes);
  if (!array.ok()) return array.error();
  ArrayReading& reading = array.value().reading;
  Result<std::vector<Difference>> found = differences(ours.cache, {reading.matrix}, comparison.tolerance, stop);
  if (!found.ok()) return found.error();
  comparison.arrays.push_back({part_text(pair), std::move(array.value().shape), reading.words});
  comparison.theirs.push_back(std::move(reading.matrix));
  comparison.differences.push_back(std::move(found.value()[0]));
  return Done{};
}

// The array under the reading that has the fewest wrong cells.
Status add_array(Ours& ours, Comparison& comparison, const TensorFile& file, const NamePair& pair,
                 const StopFlag* stop) {
  const Problem& problem = ours.session.problem;
  const bool no_wo = pair.ours == MatrixKind::kOut && !problem.wo;
  const MatrixKind kind = no_wo ? MatrixKind::kHeadsOut : pair.ours;
  const std::optional<KindShape> shape = shape_of(kind, problem, ours.shapes);
  if (!shape) {
    return bad_input(in_quotes(pair.theirs) + ": this session has no " + std::string(file_key(kind)) +
                     " to compare it with");
  }
  if (pair.reading) return add_laid_out(ours, comparison, file, pair, kind, stop);
  Result<Tensor64> tensor = file.read_float64(pair.theirs, pair.leading);
  if (!tensor.ok()) return tensor.error();
  const Result<std::vector<ArrayReading>> readings =
      read_array(tensor.value(), pair.theirs, kind, *shape, ours.shapes.heads);
  if (!readings.ok()) return readings.error();
  std::optional<Difference> best;
  std::optional<ArrayReading> chosen;
  for (const ArrayReading& reading : readings.value()) {
    Result<std::vector<Difference>> found = differences(ours.cache, {reading.matrix}, comparison.tolerance, stop);
    if (!found.ok()) return found.error();
    if (best && found.value()[0].wrong >= best->wrong) continue;
    best = std::move(found.value()[0]);
    chosen = reading;
  }
  comparison.arrays.push_back({part_text(pair), tensor.value().shape, chosen->words});
  comparison.theirs.push_back(std::move(chosen->matrix));
  comparison.differences.push_back(std::move(*best));
  return Done{};
}

// In the order in which they are computed.
void sort_arrays(Comparison& comparison) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < comparison.arrays.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return comparison.theirs[a].kind < comparison.theirs[b].kind; });
  const auto reorder = [&](auto& items) {
    std::remove_reference_t<decltype(items)> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(items[i]));
    items = std::move(sorted);
  };
  reorder(comparison.arrays);
  reorder(comparison.theirs);
  reorder(comparison.differences);
}

// What the file names as we do, and `names`.
std::vector<NamePair> pairs_of(const TensorFile& file, const std::vector<NamePair>& names,
                               std::vector<LeftAlone>& left_alone) {
  std::vector<NamePair> pairs = names;
  for (const TensorInfo& info : file.tensors()) {
    const auto is_it = [&](const NamePair& pair) { return pair.theirs == info.name; };
    if (std::any_of(names.begin(), names.end(), is_it)) continue;
    const std::optional<MatrixKind> kind = kind_from_key(info.name);
    const auto is_kind = [&](const NamePair& pair) { return pair.ours == *kind; };
    if (!kind) {
      left_alone.push_back({info.name, "is not the name of a matrix here"});
    } else if (std::any_of(names.begin(), names.end(), is_kind)) {
      left_alone.push_back({info.name, "another array was given for it"});
    } else if (!info.problem.empty()) {
      left_alone.push_back({info.name, info.problem});
    } else {
      pairs.push_back({info.name, {}, *kind});
    }
  }
  return pairs;
}

Error nothing_to_compare(const TensorFile& file, const std::vector<LeftAlone>& left_alone) {
  std::string message =
      "nothing in it can be compared by its name: say which array is which, on the command line with --name "
      "THEIRS=attn (or heads_out, out, …)";
  constexpr std::size_t kNamed = 8;
  for (std::size_t i = 0; i < left_alone.size() && i < kNamed; ++i) {
    message += (i == 0 ? "; it has " : ", ") + left_alone[i].name;
    const TensorInfo* info = file.find(left_alone[i].name);
    if (info != nullptr) message += " " + shape_text(info->shape);
  }
  if (left_alone.size() > kNamed) message += " and " + std::to_string(left_alone.size() - kNamed) + " more";
  return bad_input(std::move(message));
}

// What is compared is computed here: from Q, K and V.
Result<Shapes> computable_shapes(const Session& session) {
  if (!is_weights_only(session.problem.source)) return check_session(session);
  return bad_input(
      "only attention weights are given here, and nothing to compute others from: compare a session with q, k and v "
      "with them instead");
}

// The weights that another session consists of.
OtherMatrix given_attn(const Session& other) {
  OtherMatrix attn{MatrixKind::kAttn};
  for (const SharedMatrix& head : std::get<WeightsSource>(other.problem.source).attn) {
    attn.heads.push_back(head->cast<double>());
  }
  return attn;
}

std::vector<Matrix> rounded(const std::vector<MatrixD>& heads) {
  std::vector<Matrix> matrices;
  for (const MatrixD& head : heads) matrices.push_back(head.cast<float>());
  return matrices;
}

MatrixD mean_of(const std::vector<MatrixD>& heads) {
  MatrixD sum = heads[0];
  for (std::size_t head = 1; head < heads.size(); ++head) sum += heads[head];
  return sum / static_cast<double>(heads.size());
}

}  // namespace

bool Comparison::equal() const {
  return std::all_of(differences.begin(), differences.end(), [](const Difference& each) { return each.equal(); });
}

Result<NamePair> parse_name_pair(std::string_view text) {
  const auto wrong = [&](const std::string& what) { return usage_error(in_quotes(text) + " " + what); };
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return wrong("is not THEIRS=ours, such as weights=attn or attentions[1,0]=attn");
  }
  NamePair pair;
  const std::string_view ours = text.substr(equals + 1);
  const std::optional<MatrixKind> kind = kind_from_key(ours);
  if (!kind) {
    std::string known;
    for (const MatrixKind each : kAllMatrixKinds) known += (known.empty() ? "" : ", ") + std::string(file_key(each));
    return wrong("names no matrix of ours after \"=\": there are " + known);
  }
  pair.ours = *kind;
  std::string_view theirs = text.substr(0, equals);
  const std::size_t bracket = theirs.rfind('[');
  if (theirs.ends_with(']') && bracket != std::string_view::npos && bracket > 0) {
    std::string_view numbers = theirs.substr(bracket + 1, theirs.size() - bracket - 2);
    theirs = theirs.substr(0, bracket);
    while (true) {
      std::uint64_t number = 0;
      const auto [end, problem] = std::from_chars(numbers.data(), numbers.data() + numbers.size(), number);
      if (problem != std::errc{}) return wrong("has no list of whole numbers in its brackets, such as [1,0]");
      pair.leading.push_back(number);
      numbers.remove_prefix(static_cast<std::size_t>(end - numbers.data()));
      if (numbers.empty()) break;
      if (numbers[0] != ',') return wrong("has no list of whole numbers in its brackets, such as [1,0]");
      numbers.remove_prefix(1);
    }
  }
  pair.theirs = std::string(theirs);
  return pair;
}

std::string part_text(const NamePair& pair) {
  std::string text = pair.theirs;
  for (std::size_t axis = 0; axis < pair.leading.size(); ++axis) {
    text += (axis == 0 ? "[" : ",") + std::to_string(pair.leading[axis]);
  }
  return text + (pair.leading.empty() ? "" : "]");
}

Result<Comparison> compare_arrays(const Session& session, const TensorFile& file, const std::vector<NamePair>& names,
                                  double tolerance, const StopFlag* stop) {
  const Result<Shapes> shapes = computable_shapes(session);
  if (!shapes.ok()) return shapes.error();
  Ours ours{session, shapes.value(), InputCache(session.problem, shapes.value())};
  Comparison comparison;
  comparison.tolerance = tolerance;
  std::optional<Error> first_problem;
  const std::vector<NamePair> pairs = pairs_of(file, names, comparison.left_alone);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Status added = add_array(ours, comparison, file, pairs[i], stop);
    if (added.ok()) continue;
    const bool was_named = i < names.size() && names[i].is_required;
    if (was_named || added.error().code == ErrorCode::kCancelled) return added.error();
    if (!first_problem) first_problem = added.error();
    comparison.left_alone.push_back({pairs[i].theirs, added.error().message});
  }
  if (comparison.arrays.empty()) {
    if (first_problem) return *first_problem;
    return nothing_to_compare(file, comparison.left_alone);
  }
  sort_arrays(comparison);
  return finish(ours, std::move(comparison), stop);
}

Result<Comparison> compare_sessions(const Session& session, const Session& other, double tolerance,
                                    const StopFlag* stop) {
  const Result<Shapes> shapes = computable_shapes(session), their_shapes = check_session(other);
  if (!shapes.ok()) return shapes.error();
  if (!their_shapes.ok()) return their_shapes.error();
  Ours ours{session, shapes.value(), InputCache(session.problem, shapes.value())};
  InputCache their_cache(other.problem, their_shapes.value());
  Comparison comparison;
  comparison.tolerance = tolerance;
  comparison.settings = session_differences(session, shapes.value(), other, their_shapes.value());
  const bool large = held_bytes(shapes.value()) > kMostHeldBytes / 4;
  for (const MatrixKind kind : kAllMatrixKinds) {
    const std::optional<KindShape> here = shape_of(kind, session.problem, shapes.value());
    const bool given = is_weights_only(other.problem.source);
    const std::optional<KindShape> there =
        given && kind != MatrixKind::kAttn ? std::nullopt : shape_of(kind, other.problem, their_shapes.value());
    if (!here || !there || *here != *there) continue;
    if (large && row_axis(kind) == Axis::kQueries && col_axis(kind) == Axis::kKeys) {
      comparison.left_alone.push_back({std::string(file_key(kind)), "is too large to be held for both sessions"});
      continue;
    }
    if (is_stopped(stop)) return Error{ErrorCode::kCancelled, "the comparison was stopped"};
    comparison.arrays.push_back({std::string(file_key(kind)), {}, ""});
    comparison.theirs.push_back(given ? given_attn(other) : our_matrix(their_cache, kind, stop));
  }
  if (comparison.arrays.empty()) {
    return bad_input("the two sessions have no matrix of the same shape: " + shapes_words(shapes.value()) + " here, " +
                     shapes_words(their_shapes.value()) + " there");
  }
  Result<std::vector<Difference>> found = differences(ours.cache, comparison.theirs, tolerance, stop);
  if (!found.ok()) return found.error();
  comparison.differences = std::move(found).value();
  return finish(ours, std::move(comparison), stop);
}

std::vector<Matrix> our_shown(const Session& session, const Comparison& comparison, std::size_t array) {
  InputCache cache(session.problem, check_session(session).value());
  return our_shown(cache, comparison, array);
}

std::vector<Matrix> our_shown(InputCache& cache, const Comparison& comparison, std::size_t array,
                              const StopFlag* stop) {
  const OtherMatrix& theirs = comparison.theirs[array];
  const OtherMatrix ours = our_matrix(cache, theirs.kind, stop);
  return rounded(theirs.mean_of_heads ? std::vector<MatrixD>{mean_of(ours.heads)} : ours.heads);
}

std::vector<Matrix> their_shown(const Comparison& comparison, std::size_t array) {
  return rounded(comparison.theirs[array].heads);
}

std::size_t most_telling(const Comparison& comparison) {
  const std::vector<Difference>& all = comparison.differences;
  const auto find = [&](auto fits) {
    return static_cast<std::size_t>(std::find_if(all.begin(), all.end(), fits) - all.begin());
  };
  std::size_t at = all.size();
  for (const MatrixKind kind : {MatrixKind::kAttn, MatrixKind::kHeadsOut, MatrixKind::kOut}) {
    if (at == all.size()) at = find([&](const Difference& each) { return each.kind == kind && !each.equal(); });
  }
  if (at == all.size()) at = find([](const Difference& each) { return !each.equal(); });
  if (at == all.size()) at = find([](const Difference& each) { return each.kind == MatrixKind::kAttn; });
  return at == all.size() ? 0 : at;
}

int most_telling_head(const Difference& difference) {
  return difference.first_wrong ? difference.first_wrong->cell.id.head : 0;
}

std::vector<NamedArray> arrays_of(const Comparison& comparison) {
  std::vector<NamedArray> arrays;
  for (const Difference& difference : comparison.differences) {
    std::vector<float> values;
    for (const Matrix& errors : difference.errors) {
      values.insert(values.end(), errors.data(), errors.data() + errors.size());
    }
    const Matrix& first = difference.errors[0];
    std::vector<std::uint64_t> shape = {static_cast<std::uint64_t>(first.rows()),
                                        static_cast<std::uint64_t>(first.cols())};
    const bool by_head = is_per_head(difference.kind) && !difference.mean_of_heads;
    if (by_head) shape.insert(shape.begin(), difference.errors.size());
    arrays.push_back({"diff_" + std::string(file_key(difference.kind)), std::move(shape), std::move(values)});
  }
  return arrays;
}

std::string cell_words(const Session& session, const Difference& difference, const MatrixCell& cell) {
  const auto place = [&](const char* what, Axis axis, Index index) {
    std::string text = std::string(what) + " " + std::to_string(index);
    if (axis != Axis::kQueries && axis != Axis::kKeys) return text;
    const std::string token = AxisNames(session, axis, index + 1)[index];
    return token == std::to_string(index) ? text : text + " (" + token + ")";
  };
  const bool by_head = is_per_head(difference.kind) && !difference.mean_of_heads;
  return (by_head ? "head " + std::to_string(cell.id.head) + ", " : "") +
         place("row", row_axis(difference.kind), cell.row) + ", " +
         place("column", col_axis(difference.kind), cell.col);
}

}  // namespace qkv
