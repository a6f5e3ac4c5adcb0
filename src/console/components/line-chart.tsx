/** A gain over time, with its number under the pointer; a stretch is zoomed by drawing over it, a double click ends that. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { formatSignedUsd } from '../words/money.ts'
import { formatMoment, labelTimes } from '../words/time.ts'

const HEIGHT = 220
const AXIS_WIDTH = 64

/**
 * The library is loaded when a chart is first shown. @property values USD as decimal strings, as many as times.
 * @property times ISO 8601 UTC
 */
export function LineChart({
  label,
  times,
  values,
}: {
  readonly label: string
  readonly times: readonly string[]
  readonly values: readonly string[]
}) {
  const place = useRef<HTMLDivElement>(null)
  /** The stretch that is shown, in seconds; null: all. */
  const [shown, show] = useState<readonly [from: number, to: number] | null>(null)
  useEffect(() => {
    let isCurrent = true
    let chart: uPlot | undefined
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const draw = async () => {
      const { default: UPlot } = await import('uplot')
      if (!isCurrent || place.current === null) return
      chart?.destroy()
      const data: uPlot.AlignedData = [times.map((time) => Date.parse(time) / 1000), values.map(Number)]
      chart = new UPlot(optionsFor(place.current, values, show), data, place.current)
    }
    const resize = new ResizeObserver(([entry]) => {
      if (entry !== undefined) chart?.setSize({ width: entry.contentRect.width, height: HEIGHT })
    })
    // Canvas knows no custom properties: another theme draws again.
    const theme = new MutationObserver(() => void draw())
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    scheme.addEventListener('change', draw)
    if (place.current !== null) resize.observe(place.current)
    void draw()
    return () => {
      isCurrent = false
      theme.disconnect()
      resize.disconnect()
      scheme.removeEventListener('change', draw)
      chart?.destroy()
    }
  }, [times, values])
  const [first = '', last = ''] = [values[0], values.at(-1)]
  return (
    <figure
      class="plot"
      role="img"
      aria-label={`${label}: from ${formatSignedUsd(first)} to ${formatSignedUsd(last)}.`}
    >
      <div ref={place} aria-hidden="true" />
      <span class="plot__x" aria-hidden="true">
        {labelTimes(shown?.[0] ?? toSeconds(times[0]), shown?.[1] ?? toSeconds(times.at(-1))).map((words) => (
          <span key={words}>{words}</span>
        ))}
      </span>
    </figure>
  )
}

function toSeconds(iso: string | undefined): number {
  return iso === undefined ? 0 : Date.parse(iso) / 1000
}

/**
 * @param values as they are shown: the chart's own numbers are coordinates only
 * @param show is told the stretch whenever it changes
 */
function optionsFor(
  place: HTMLElement,
  values: readonly string[],
  show: (stretch: readonly [from: number, to: number]) => void,
): uPlot.Options {
  const style = getComputedStyle(place)
  // A colour of both themes is resolved by the browser where it is used, so it is read from elements that use it.
  const colour = (name: string) => resolveColour(place, style.getPropertyValue(name))
  const [accent, line, faint] = [colour('--accent-fill'), colour('--line'), colour('--ink-3')]
  const font = `12px ${style.fontFamily}`
  const axis = { stroke: faint, font, grid: { stroke: line, width: 1 }, ticks: { show: false } }
  return {
    width: place.clientWidth,
    height: HEIGHT,
    cursor: { y: false, points: { size: 7 } },
    legend: { live: true },
    hooks: {
      setScale: [
        ({ scales }, name) => {
          const { min, max } = scales.x ?? {}
          if (name === 'x' && min != null && max != null) show([min, max])
        },
      ],
    },
    axes: [
      { show: false },
      {
        ...axis,
        side: 1,
        size: AXIS_WIDTH,
        values: (_, splits) => splits.map((split) => formatSignedUsd(String(split))),
      },
    ],
    series: [
      {
        label: 'At',
        value: (_, seconds) =>
          seconds === null ? '–' : formatMoment(new Date(seconds * 1000).toISOString()),
      },
      {
        label: 'Gain',
        stroke: accent,
        width: 2,
        fill: `color-mix(in srgb, ${accent} 12%, transparent)`,
        points: { show: false },
        value: (_, __, ___, position) => (position === null ? '–' : formatSignedUsd(values[position] ?? '')),
      },
    ],
  }
}

/** The colour as a canvas understands it. */
function resolveColour(place: HTMLElement, colour: string): string {
  const sample = document.createElement('i')
  sample.style.color = colour
  place.append(sample)
  const resolved = getComputedStyle(sample).color
  sample.remove()
  return resolved
}
