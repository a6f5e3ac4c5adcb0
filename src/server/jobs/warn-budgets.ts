/** Warns owners of budgets that are nearly used up. */
import type { Services } from '../../kernel/context.ts'
import { writeBudgetWarnings } from '../../records/notifications/budget-warnings.ts'

/** Runs one round. */
export function warnBudgets(
  services: Pick<Services, 'database' | 'newId' | 'clock' | 'onCalendar'>,
): Promise<number> {
  const at = services.clock()
  return writeBudgetWarnings(services, { now: services.onCalendar(at), at })
}
