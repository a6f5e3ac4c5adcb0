/** What deciding on card purchases needs, out of the gateway's services. */
import { pullForPurchase } from '../wallets/escrow/escrow.ts'
import { readCoverage } from '../wallets/reconcile/read-coverage.ts'
import type { CardAuthorizationDependencies } from './authorize.ts'

type Services = Omit<CardAuthorizationDependencies, 'readCoverage' | 'knownCards' | 'pull' | 'parsePolicy'> &
  Parameters<typeof readCoverage>[0] &
  Parameters<typeof pullForPurchase>[0]

/** @param knownCards remembered cards; absent: none. */
export function cardAuthorization(
  services: Services,
  parsePolicy: CardAuthorizationDependencies['parsePolicy'],
  knownCards: CardAuthorizationDependencies['knownCards'] = new Map(),
): CardAuthorizationDependencies {
  return {
    ...services,
    parsePolicy,
    readCoverage: (accountId) => readCoverage(services, accountId),
    knownCards,
    pull: (wanted, withinMs) => pullForPurchase(services, wanted, withinMs),
  }
}
