/** Rail controls of a control plane elsewhere (`RAIL_CONTROLS_URL`): GET answers `{ rails: [{ id, enabled, reason? }] }`. */
import { z } from 'zod'
import { Failure } from '../../failures/failure.ts'
import { callProvider, retryAfterOf } from '../http-client.ts'
import type { RailControls } from '../rail-controls.ts'
import { controlsUnavailable } from './unavailable.ts'

const document = z.object({
  rails: z.array(z.object({ id: z.string(), enabled: z.boolean(), reason: z.string().nullish() })),
})

type Rails = z.output<typeof document>['rails']

/** The rail controls port over HTTP. @param timeoutMs for the whole answer; money waits for it. */
export function createRemoteRailControls({
  url,
  timeoutMs = 1000,
}: {
  readonly url: string
  readonly timeoutMs?: number
}): RailControls {
  return {
    read: async (rail) => {
      const rails = await readRails(url, timeoutMs)
      const [control, ...others] = rails.filter(({ id }) => id === rail)
      // Two entries for one rail may contradict each other; guessing which holds could move money that must not move.
      if (control === undefined || others.length > 0)
        throw controlsUnavailable(
          `the control plane has ${others.length === 0 ? 'no' : 'several'} entries for ${rail}`,
          {},
        )
      return { rail, enabled: control.enabled, reason: control.reason ?? null }
    },
    write: async () => {
      throw new Failure('conflict', 'The rail controls are kept by another control plane.', {
        hint: 'Switch the rail there (RAIL_CONTROLS_URL).',
      })
    },
  }
}

async function readRails(url: string, timeoutMs: number): Promise<Rails> {
  try {
    const response = await callProvider({ url, headers: { accept: 'application/json' }, timeoutMs })
    if (response.ok) return document.parse(JSON.parse(response.text)).rails
    const retryAfter = retryAfterOf(response)
    throw controlsUnavailable(`the control plane answered ${response.status}`, { retryAfter })
  } catch (cause) {
    if (cause instanceof Failure) throw cause
    throw controlsUnavailable(`the control plane gave no usable answer in ${timeoutMs} ms`, { cause })
  }
}
