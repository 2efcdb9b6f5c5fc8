// One heat map: from a pixel to a cell, from the cell's value to a colour.
// CELL_…, LOG_START, MAX_SAMPLES and TABLE_SIZE come from C++ (heatmap_renderer.cpp). Lengths are device pixels,
// y grows downwards; "drawn" is what is on screen, the transpose of "stored" where u_transposed.

uniform sampler2D u_values;     // stored, .r = value
uniform sampler2D u_keep;       // stored, .r = 1 where visible
uniform sampler2D u_table;      // TABLE_SIZE colours
uniform ivec2 u_stored;         // columns, rows
uniform int u_fold;             // width of the textures where cells fill them in reading order, else 0
uniform bool u_transposed;
uniform bool u_has_keep;
uniform bool u_unavailable;     // there is no texture: only a warning is drawn

uniform vec4 u_rect;            // viewport: left, top, right, bottom
uniform vec2 u_framebuffer;
uniform ivec2 u_first;          // drawn cell at the viewport's corner (column, row) …
uniform vec2 u_first_part;      // … and the part of it that is cut off, 0 … 1
uniform vec2 u_cell;            // size of a drawn cell
uniform float u_radius;         // corner radius of the viewport

uniform float u_low, u_high;    // ends of the colour scale
uniform float u_prescale;       // power of two that keeps high − low finite
uniform bool u_flat;            // every value is drawn in mid-scale
uniform bool u_log;             // a logarithmic scale: 0 has the first colour of the table for its own
uniform float u_log_low;        // log2 of the low end
uniform float u_log_factor;     // 1 / log2(high / low)

uniform vec4 u_masked, u_masked_line, u_nan, u_warning;
uniform vec4 u_ink_low, u_ink_high;  // marks on the colours of the two ends
uniform float u_hatch_phase;    // keeps the hatch on the cells while they are panned
uniform float u_hatch_period, u_hatch_width;
uniform float u_pixel;          // device pixels per logical pixel
uniform float u_mark_cell;      // least side of a cell that has room for marks

out vec4 out_color;

struct Cell {
  int kind;
  float position;  // on the colour scale, 0 … 1
};

vec4 table_color(float t) {
  int index = clamp(int(floor(clamp(t, 0.0, 1.0) * float(TABLE_SIZE))), 0, TABLE_SIZE - 1);
  return texelFetch(u_table, ivec2(index, 0), 0);
}

ivec2 drawn_size() { return u_transposed ? u_stored.yx : u_stored; }

bool is_inside(ivec2 drawn) {
  return all(greaterThanEqual(drawn, ivec2(0))) && all(lessThan(drawn, drawn_size()));
}

Cell read_cell(ivec2 drawn) {
  ivec2 texel = u_transposed ? drawn.yx : drawn;
  if (u_fold > 0) {
    int index = texel.y * u_stored.x + texel.x;
    texel = ivec2(index % u_fold, index / u_fold);
  }
  if (u_has_keep && texelFetch(u_keep, texel, 0).r < 0.5) return Cell(CELL_MASKED, 0.0);
  float value = texelFetch(u_values, texel, 0).r;
  // By bits: compilers may assume that isnan() and isinf() are false.
  uint bits = floatBitsToUint(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    if ((bits & 0x007fffffu) != 0u) return Cell(CELL_NAN, 0.0);
    return (bits >> 31) == 0u ? Cell(CELL_PLUS_INF, 1.0) : Cell(CELL_MINUS_INF, 0.0);
  }
  if (u_flat) return Cell(CELL_VALUE, 0.5);
  if (u_log && value == 0.0) return Cell(CELL_VALUE, 0.0);
  if (value < u_low) return Cell(CELL_BELOW, 0.0);
  if (value > u_high) return Cell(CELL_ABOVE, 1.0);
  if (u_log) {
    float share = clamp((log2(value) - u_log_low) * u_log_factor, 0.0, 1.0);
    return Cell(CELL_VALUE, LOG_START + (1.0 - LOG_START) * share);
  }
  float low = u_low * u_prescale;
  return Cell(CELL_VALUE, (value * u_prescale - low) / (u_high * u_prescale - low));
}

// Diagonal lines; `pixel` relative to the viewport.
vec4 hatch(vec2 pixel, vec4 fill, vec4 line, float period, float width) {
  float along = mod(pixel.x + pixel.y + u_hatch_phase, period) - 0.5 * period;
  float distance = abs(along) * 0.70710678;
  return mix(fill, line, clamp(0.5 * width + 0.5 - distance, 0.0, 1.0));
}

vec4 masked_color(vec2 pixel) { return hatch(pixel, u_masked, u_masked_line, u_hatch_period, u_hatch_width); }

// An infinite cell: the end's colour with a thin frame inside, or a chequer where cells are small.
vec4 infinite_color(vec4 end, vec4 ink, vec2 within, vec2 pixel) {
  if (min(u_cell.x, u_cell.y) < u_mark_cell) {
    float side = max(1.0, floor(u_pixel + 0.5));
    return mod(floor(pixel.x / side) + floor(pixel.y / side), 2.0) < 0.5 ? end : ink;
  }
  vec2 to_edge = min(within, u_cell - within);
  float inset = min(to_edge.x, to_edge.y) / u_pixel;
  return inset >= 2.0 && inset < 3.5 ? ink : end;
}

// A clipped cell: the end's colour with a small triangle in the corner at `from_corner` = (0, 0).
vec4 clipped_color(vec4 end, vec4 ink, vec2 from_corner) {
  float smaller = min(u_cell.x, u_cell.y);
  float side = clamp(0.25 * smaller, 4.0 * u_pixel, 8.0 * u_pixel);
  return smaller >= u_mark_cell && from_corner.x + from_corner.y < side ? ink : end;
}

// `within`: place inside the cell.
vec4 cell_color(Cell cell, vec2 within, vec2 pixel) {
  switch (cell.kind) {
    case CELL_MASKED: return masked_color(pixel);
    case CELL_NAN: return u_nan;
    case CELL_PLUS_INF: return infinite_color(table_color(1.0), u_ink_high, within, pixel);
    case CELL_MINUS_INF: return infinite_color(table_color(0.0), u_ink_low, within, pixel);
    case CELL_ABOVE: return clipped_color(table_color(1.0), u_ink_high, vec2(u_cell.x - within.x, within.y));
    case CELL_BELOW: return clipped_color(table_color(0.0), u_ink_low, vec2(within.x, u_cell.y - within.y));
  }
  return table_color(cell.position);
}

// Position relative to the drawn cell u_first, in cells: small numbers, exact enough for 100 000 cells.
vec2 cells_at(vec2 pixel) { return u_first_part + pixel / u_cell; }

// Cells smaller than a pixel: the mean position of what the pixel covers. One NaN shows.
vec4 averaged_color(vec2 pixel) {
  ivec2 n = clamp(ivec2(ceil(1.0 / u_cell)), ivec2(1), ivec2(MAX_SAMPLES));
  float sum = 0.0;
  int visible = 0, masked = 0;
  bool any_nan = false;
  for (int j = 0; j < n.y; ++j) {
    for (int i = 0; i < n.x; ++i) {
      vec2 at = pixel - 0.5 + (vec2(i, j) + 0.5) / vec2(n);
      ivec2 drawn = u_first + ivec2(floor(cells_at(at)));
      if (!is_inside(drawn)) continue;
      Cell cell = read_cell(drawn);
      any_nan = any_nan || cell.kind == CELL_NAN;
      if (cell.kind == CELL_MASKED) {
        ++masked;
      } else {
        ++visible;
        sum += cell.position;
      }
    }
  }
  int covered = visible + masked;
  if (covered == 0) return vec4(0.0);
  vec4 color = u_nan;
  if (!any_nan) {
    color = visible > 0 ? table_color(sum / float(visible)) : vec4(0.0);
    color = mix(color, masked_color(pixel), float(masked) / float(covered));
  }
  return vec4(color.rgb, float(covered) / float(n.x * n.y));
}

vec4 single_color(vec2 pixel) {
  vec2 at = cells_at(pixel);
  ivec2 drawn = u_first + ivec2(floor(at));
  if (!is_inside(drawn)) return vec4(0.0);
  return cell_color(read_cell(drawn), fract(at) * u_cell, pixel);
}

// How much of the pixel the rounded viewport covers.
float coverage(vec2 pixel) {
  vec2 half_size = 0.5 * (u_rect.zw - u_rect.xy);
  float radius = min(u_radius, min(half_size.x, half_size.y));
  vec2 q = abs(pixel - half_size) - half_size + radius;
  float distance = length(max(q, 0.0)) + min(max(q.x, q.y), 0.0) - radius;
  return clamp(0.5 - distance, 0.0, 1.0);
}

void main() {
  vec2 pixel = vec2(gl_FragCoord.x, u_framebuffer.y - gl_FragCoord.y) - u_rect.xy;
  vec4 color;
  if (u_unavailable) {
    color = hatch(pixel, u_masked, u_warning, 2.0 * u_hatch_period, 3.0 * u_hatch_width);
  } else if (u_cell.x < 1.0 || u_cell.y < 1.0) {
    color = averaged_color(pixel);
  } else {
    color = single_color(pixel);
  }
  out_color = vec4(color.rgb, color.a * coverage(pixel));
}
