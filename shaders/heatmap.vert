// The viewport of one heat map as two triangles, without a vertex buffer.

uniform vec4 u_rect;         // viewport: left, top, right, bottom; device pixels from the window's top left
uniform vec2 u_framebuffer;  // size in device pixels

void main() {
  vec2 corner = vec2(float(gl_VertexID & 1), float(gl_VertexID >> 1));
  vec2 pixel = mix(u_rect.xy, u_rect.zw, corner);
  vec2 ndc = pixel / u_framebuffer * 2.0 - 1.0;
  gl_Position = vec4(ndc.x, -ndc.y, 0.0, 1.0);
}
