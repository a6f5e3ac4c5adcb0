/** Whether the rail of a money operation is on. What cannot be read counts as off. */
import { Failure } from '../../failures/failure.ts'
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
        hint: 'Nothing was done. Try again once the operator has switched it on.',
      },
    )
}
