#include "app/panels/option_pictures.h"

#include <algorithm>
#include <cmath>

#include "app/engine/pending.h"
#include "core/attention/formula.h"
#include "core/attention/position.h"
#include "core/base/number_text.h"
#include "core/figure/range.h"

namespace qkv {
namespace {

constexpr float kHeight = 64, kMostWidth = 96, kLine = 16, kTextGap = 12, kBelow = 12;
constexpr std::size_t kMostBars = 32;
constexpr float kWidestBar = 24;

float slot_width(std::size_t bars) { return std::min(kWidestBar, kMostWidth / static_cast<float>(bars)); }

// The largest of each of at most kMostBars runs of values.
std::vector<double> in_buckets(const std::vector<double>& values) {
  const std::size_t buckets = std::min(kMostBars, values.size());
  std::vector<double> result(buckets, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    double& most = result[i * buckets / values.size()];
    most = std::max(most, values[i]);
  }
  return result;
}

bool has_mask(const AttentionOptions& o) { return o.causal || o.window || !o.key_valid.empty(); }

void refresh_maps(OptionPictures& p, const AttentionOptions& options, const Shapes& shapes, int head) {
  const bool same = p.options == options && p.shapes == shapes && p.head == head;
  p.options = options;  // shares the newest bias, so that the next comparison is one of pointers
  if (same) return;
  p.shapes = shapes;
  p.head = head;
  const auto set = [](OptionPictures::Map& map, Matrix values) {
    const bool alike = map.values.rows() == values.rows() && map.values.cols() == values.cols();
    if (map.version > 0 && alike && map.values == values) return;
    map.values = std::move(values);
    ++map.version;
  };
  if (has_mask(options)) set(p.mask, mask_map(options, shapes.nq, shapes.nk));
  if (options.alibi || options.bias) set(p.added, added_map(options, shapes, head));
  if (options.rope) set(p.rope, rope_map(*options.rope, std::max(shapes.nq, shapes.nk), shapes.d_k));
}

void refresh_sinks(OptionPictures& p, const HeadTrace& head) {
  p.sinks.clear();
  p.least_sink = 1;
  p.most_sink = 0;
  for (const RowStats& row : head.rows) {
    if (row.visible == 0 || !std::isfinite(row.sink)) continue;
    p.least_sink = std::min(p.least_sink, row.sink);
    p.most_sink = std::max(p.most_sink, row.sink);
  }
  for (const Index row : sampled(static_cast<Index>(head.rows.size()), kMostBars))
    p.sinks.push_back(head.rows[static_cast<std::size_t>(row)].sink);
}

// A picture's place at the left, and lines of words beside it.
class Frame {
 public:
  Frame(Ui& ui, const std::string& name, float width)
      : ui_(ui),
        list_(ImGui::GetWindowDrawList()),
        at_(ImGui::GetCursorScreenPos()),
        room_(ImGui::GetContentRegionAvail().x) {
    min = {std::floor(at_.x), std::floor(at_.y)};
    max = {min.x + std::floor(width), min.y + kHeight};
    ui_.widgets->add(name, min, max);
  }
  ~Frame() { ImGui::Dummy({room_, kHeight + kBelow}); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Lines beside the picture, centred on its height.
  void words(const std::vector<std::string>& lines) {
    float y = min.y + std::floor((kHeight - kLine * static_cast<float>(lines.size())) / 2);
    for (const std::string& line : lines) {
      draw_label_in(ui_, list_, {max.x + kTextGap, y}, {at_.x + room_, y + kLine}, line, 11, ui_.colors().dim,
                    TextAlign::kLeft);
      y += kLine;
    }
  }
  void outline() {
    list_->AddRect({min.x - 0.5f, min.y - 0.5f}, {max.x + 0.5f, max.y + 0.5f}, to_u32(ui_.colors().line), 3, 0, 1);
  }
  ImDrawList* list() { return list_; }

  ImVec2 min, max;

 private:
  Ui& ui_;
  ImDrawList* list_;
  ImVec2 at_;
  float room_;
};

// Cells of at most 16 pixels, square where the map is not longer than the place.
float map_width(const Matrix& values) {
  const float cell = kHeight / static_cast<float>(values.rows());
  return std::clamp(cell * static_cast<float>(values.cols()), 16.0f, kMostWidth);
}

void submit_map(Ui& ui, Frame& frame, const OptionPictures::Map& map, int number, const std::string& colormap,
                const ColorRange& range, bool masks) {
  HeatmapDraw draw;
  draw.key = (std::uint64_t{0xff} << 56) + static_cast<std::uint64_t>(number);  // no matrix of the stage has it
  draw.version = map.version;
  draw.values = map.values.data();
  if (masks) draw.keep = map.values.data();
  draw.rows = static_cast<int>(map.values.rows());
  draw.cols = static_cast<int>(map.values.cols());
  draw.min = frame.min;
  draw.max = frame.max;
  draw.cell_w = static_cast<double>(frame.max.x - frame.min.x) / draw.cols;
  draw.cell_h = static_cast<double>(frame.max.y - frame.min.y) / draw.rows;
  draw.colormap = colormap;
  draw.theme = ui.theme;
  draw.range = range;
  draw.radius = 3;
  draw.sink = ui.sink;
  ui.heatmaps.push_back(std::move(draw));
  frame.list()->AddCallback(
      [](const ImDrawList*, const ImDrawCmd* command) {
        const auto& heatmap = *static_cast<const HeatmapDraw*>(command->UserCallbackData);
        if (heatmap.sink != nullptr) heatmap.sink->draw(heatmap, command->ClipRect);
      },
      &ui.heatmaps.back());
  frame.list()->AddCallback(ImDrawCallback_ResetRenderState, nullptr);
  frame.outline();
}

std::string percent(double share) { return format_fixed(share * 100, share < 0.1 ? 1 : 0) + " %"; }

std::string span_text(double low, double high) {
  const std::string from = format_value(low, 2), to = format_value(high, 2);
  return from == to ? from : from + " … " + to;
}

}  // namespace

void refresh_pictures(OptionPictures& p, const StageInput& in, const Shapes& shapes,
                      const std::optional<CellRef>& focus) {
  refresh_maps(p, in.session.problem.options, shapes, std::clamp(in.session.view.head, 0, shapes.heads - 1));

  const Trace& trace = in.computed.trace;
  const AttentionOptions& options = trace.problem.options;
  const int head = std::clamp(in.session.view.head, 0, trace.shapes.heads - 1);
  const bool of_query = focus && row_axis(focus->id.kind) == Axis::kQueries;
  const Index row = of_query ? std::clamp<Index>(focus->row, 0, trace.shapes.nq - 1) : 0;
  if (p.trace_version == in.version && p.trace_head == head && p.row == row) return;
  const bool same_numbers = p.trace_version == in.version && p.trace_head == head;
  p.trace_version = in.version;
  p.trace_head = head;
  p.row = row;
  if (is_pending(in.computed)) {
    p.before.clear();
    p.now.clear();
    p.sinks.clear();
    p.span.reset();
    return;
  }
  if (options.scale) {
    AttentionOptions usual = options;
    usual.scale.reset();
    p.before = in_buckets(weights_with(trace, usual, head, row));
    p.now = in_buckets(weights_with(trace, options, head, row));
  }
  if (same_numbers) return;
  p.span = options.softcap ? score_span(trace, head) : std::nullopt;
  if (!options.sink.empty()) refresh_sinks(p, trace.heads[static_cast<std::size_t>(head)]);
}

void draw_scale_picture(Ui& ui, const StageInput& in, const OptionPictures& p) {
  const Session& session = in.computed.session;
  if (!in.computed.trace.problem.options.scale || p.now.empty()) return;
  Frame frame(ui, "picture/scale", kMostWidth);
  double most = 0;
  for (const auto* row : {&p.before, &p.now})
    for (const double weight : *row) most = std::max(most, std::isfinite(weight) ? weight : 0);
  const float slot = slot_width(p.now.size());
  const float gap = slot >= 8 ? 2.0f : slot >= 4 ? 1.0f : 0.0f;
  const auto bar = [&](std::size_t i, double weight, float inset, Color color) {
    if (!(weight > 0) || most <= 0) return;
    const float x = frame.min.x + slot * static_cast<float>(i);
    const float height = std::max(1.0f, static_cast<float>(weight / most) * (kHeight - 2));
    frame.list()->AddRectFilled({x + inset, frame.max.y - height}, {x + slot - gap - inset, frame.max.y}, to_u32(color),
                                slot >= 8 ? 2.0f : 0.0f, ImDrawFlags_RoundCornersTop);
  };
  for (std::size_t i = 0; i < p.now.size(); ++i) {
    bar(i, i < p.before.size() ? p.before[i] : 0, 0, with_alpha(ui.colors().faint, 0.4));
    bar(i, p.now[i], slot >= 8 ? slot * 0.2f : 0, with_alpha(ui.colors().accent, slot >= 8 ? 1.0 : 0.7));
  }
  frame.list()->AddLine({frame.min.x, frame.max.y + 0.5f}, {frame.max.x, frame.max.y + 0.5f}, to_u32(ui.colors().line));
  const auto largest = [](const std::vector<double>& row) { return *std::max_element(row.begin(), row.end()); };
  const Index row = std::min<Index>(p.row, static_cast<Index>(session.tokens.size()) - 1);
  frame.words({"weights of " + shown_names(in, Axis::kQueries, row + 1)[row],
               "largest " + format_fixed(largest(p.now), 3), "at T = 1: " + format_fixed(largest(p.before), 3)});
}

void draw_mask_picture(Ui& ui, const StageInput& in, const OptionPictures& p) {
  if (!has_mask(p.options)) return;
  Frame frame(ui, "picture/mask", map_width(p.mask.values));
  // As on the stage: visible cells are quiet, hidden ones hatched.
  submit_map(ui, frame, p.mask, 0, "grey", {0, ui.theme == ThemeName::kDark ? 5.0f : 1.06f, false}, true);
  const Shapes& s = in.computed.trace.shapes;
  const Index hidden = in.computed.digest.hidden, cells = s.nq * s.nk;
  const std::string share = cells < 10000 ? std::to_string(hidden) + " of " + std::to_string(cells)
                                          : percent(static_cast<double>(hidden) / static_cast<double>(cells));
  std::vector<std::string> lines = {"queries ↓  keys →", share + " hidden"};
  const Index dead = in.computed.digest.warnings.dead_rows;
  if (dead > 0) lines.push_back(std::to_string(dead) + (dead == 1 ? " dead row" : " dead rows"));
  frame.words(lines);
}

void draw_rope_picture(Ui& ui, const StageInput& in, const OptionPictures& p) {
  if (!p.options.rope) return;
  Frame frame(ui, "picture/rope", std::max(32.0f, map_width(p.rope.values)));
  submit_map(ui, frame, p.rope, 1, in.session.view.signed_map, {-1, 1, false}, false);
  const auto slowest = static_cast<float>(rope_frequency(*p.options.rope, p.shapes.d_k / 2 - 1, p.shapes.d_k));
  const std::string turn = p.shapes.d_k > 2 ? "a step: 1 … " + factor_text(slowest) + " rad" : "a step: 1 rad";
  frame.words({"positions ↓  pairs →", "cosine of the angle", turn});
}

void draw_added_picture(Ui& ui, const StageInput& in, const OptionPictures& p) {
  if (!p.options.alibi && !p.options.bias) return;
  Frame frame(ui, "picture/added", map_width(p.added.values));
  const FiniteExtent extent = finite_extent(p.added.values);
  submit_map(ui, frame, p.added, 2, in.session.view.signed_map, resolve_range({RangeMode::kSymmetric, -1, 1}, extent),
             false);
  const char* what = p.options.alibi && p.options.bias ? "ALiBi + B" : p.options.alibi ? "ALiBi" : "B";
  std::vector<std::string> lines = {"added to the scores:", what};
  if (p.options.alibi && p.shapes.heads > 1) lines[1] += ", head " + std::to_string(p.head + 1);
  if (extent.count > 0) lines.push_back(span_text(static_cast<double>(extent.low), static_cast<double>(extent.high)));
  frame.words(lines);
}

void draw_softcap_picture(Ui& ui, const OptionPictures& p) {
  if (!p.options.softcap) return;
  const double cap = static_cast<double>(*p.options.softcap);
  const auto capped = [&](double s) { return cap * std::tanh(s / cap); };
  Frame frame(ui, "picture/softcap", kMostWidth);
  const double reach = p.span ? 1.1 * std::max({std::abs(p.span->low), std::abs(p.span->high), 1e-6}) : cap;
  // Both axes from −reach to reach: the dim diagonal is no cap at all.
  const auto point = [&](double s, double value) {
    const float x = static_cast<float>((s / reach + 1) / 2), y = static_cast<float>((1 - value / reach) / 2);
    return ImVec2{frame.min.x + x * kMostWidth, frame.min.y + y * kHeight};
  };
  ImDrawList* list = frame.list();
  const ImU32 line = to_u32(ui.colors().line);
  list->PushClipRect({frame.min.x - 1, frame.min.y - 1}, {frame.max.x + 1, frame.max.y + 1}, true);
  list->AddLine(point(-reach, 0), point(reach, 0), line);
  list->AddLine(point(0, -reach), point(0, reach), line);
  list->AddLine(point(-reach, -reach), point(reach, reach), to_u32(with_alpha(ui.colors().faint, 0.6)), 1);
  ImVec2 curve[49];
  for (int i = 0; i < 49; ++i) {
    const double s = reach * (i - 24) / 24;
    curve[i] = point(s, capped(s));
  }
  list->AddPolyline(curve, 49, to_u32(ui.colors().accent), 0, 2);
  list->PopClipRect();
  if (p.span)  // where the scores that are there begin and end
    for (const double s : {p.span->low, p.span->high})
      list->AddCircleFilled(point(s, capped(s)), 3, to_u32(ui.colors().accent), 16);
  frame.outline();
  std::vector<std::string> lines = {"s → c·tanh(s/c)"};
  if (p.span) {
    lines.push_back("s: " + span_text(p.span->low, p.span->high));
    lines.push_back("→ " + span_text(capped(p.span->low), capped(p.span->high)));
  }
  frame.words(lines);
}

void draw_sink_picture(Ui& ui, const OptionPictures& p) {
  if (p.options.sink.empty() || p.sinks.empty()) return;
  Frame frame(ui, "picture/sink", kMostWidth);
  const float slot = slot_width(p.sinks.size()), gap = slot >= 8 ? 2.0f : slot >= 4 ? 1.0f : 0.0f;
  for (std::size_t i = 0; i < p.sinks.size(); ++i) {
    const double share = std::isfinite(p.sinks[i]) ? std::clamp(p.sinks[i], 0.0, 1.0) : 0;
    const float x = frame.min.x + slot * static_cast<float>(i), right = x + slot - gap;
    const float edge = frame.min.y + static_cast<float>(share) * kHeight;
    frame.list()->AddRectFilled({x, frame.min.y}, {right, edge}, to_u32(with_alpha(ui.colors().faint, 0.5)));
    frame.list()->AddRectFilled({x, edge}, {right, frame.max.y}, to_u32(with_alpha(ui.colors().accent, 0.75)));
  }
  std::vector<std::string> lines = {"of each row", "the sink takes"};
  if (p.least_sink <= p.most_sink)
    lines.push_back(percent(p.least_sink) == percent(p.most_sink)
                        ? percent(p.most_sink)
                        : percent(p.least_sink) + " … " + percent(p.most_sink));
  frame.words(lines);
}

}  // namespace qkv
