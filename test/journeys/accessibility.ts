/** Barriers for people, as axe finds them on a page. */
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from 'playwright-core'

/** Rules whose result depends on the theme. All others depend on the page and its width. */
const RULES_OF_COLOR = ['color-contrast', 'link-in-text-block']

/**
 * Finds the serious and critical violations of WCAG on a page, as `rule at elements`. In the dark theme only the rules of
 * color are checked: check the light theme at the same width too.
 */
export async function findBarriers(page: Page, colorScheme: 'light' | 'dark'): Promise<string[]> {
  // Otherwise axe opens another page for its result: our pages have no frames.
  const axe = new AxeBuilder({ page }).setLegacyMode(true).options({ resultTypes: ['violations'] })
  if (colorScheme === 'dark') axe.withRules(RULES_OF_COLOR)
  const { violations } = await axe.analyze()
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id} at ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
}
