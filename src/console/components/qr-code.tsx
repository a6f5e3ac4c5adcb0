/** A code to scan, dark on white in either theme. */
import { encode } from 'uqr'

/** Light modules around the code. Scanners need four; the padding of the style is as wide as the others. */
const BORDER = 2

/** @property label names the picture, such as `Code to scan: the gateway’s address`. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const { data, size } = encode(text, { border: BORDER })
  const path = data
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
    .join('')
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path d={path} />
    </svg>
  )
}
