/** Requires the rail of a money operation to be enabled. A control that cannot be read counts as disabled. */
import { Failure } from '../../core/failures/failure.ts'
import type { Services } from '../context.ts'
import type { Tool } from '../tool.ts'

/** @throws Failure `rail_disabled`, `controls_unavailable`. */
export async function requireRail(
  tool: Pick<Tool, 'rail'>,
  { railControls }: Pick<Services, 'railControls'>,
): Promise<void> {
  if (tool.rail === undefined) return
  const control = await railControls.read(tool.rail)
  if (!control.enabled)
    throw new Failure(
      'rail_disabled',
      `The rail ${tool.rail} is switched off${control.reason === null ? '' : `: ${control.reason}`}.`,
      {
        hint: 'The request had no effect. Try again once the operator has switched the rail on.',
      },
    )
}
