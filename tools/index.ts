/**
 * The catalogue: every tool of the product, once; a test checks that no file is missing. Tools may import base,
 * kernel, ledger, domains and policies.
 */
import type { Tool } from '../src/kernel/tool.ts'
import activityList from './activity/list.ts'
import adminAccountsList from './admin/accounts/list.ts'
import adminAccountsLock from './admin/accounts/lock.ts'
import adminAccountsUnlock from './admin/accounts/unlock.ts'
import adminAlarmsList from './admin/alarms/list.ts'
import adminAlarmsResolve from './admin/alarms/resolve.ts'
import adminDebtsList from './admin/debts/list.ts'
import adminDriftList from './admin/drift/list.ts'
import adminFigures from './admin/figures.ts'
import adminKycDecide from './admin/kyc/decide.ts'
import adminKycList from './admin/kyc/list.ts'
import adminReviewsDecide from './admin/reviews/decide.ts'
import adminReviewsList from './admin/reviews/list.ts'
import adminTravelRulesDecide from './admin/travel-rules/decide.ts'
import adminTravelRulesList from './admin/travel-rules/list.ts'
import agentsDecisions from './agents/decisions.ts'
import agentsDelegate from './agents/delegate.ts'
import agentsDelegationsList from './agents/delegations/list.ts'
import agentsDelegationsRevoke from './agents/delegations/revoke.ts'
import agentsKeysChallenge from './agents/keys/challenge.ts'
import agentsKeysCreate from './agents/keys/create.ts'
import agentsKeysGet from './agents/keys/get.ts'
import agentsKeysList from './agents/keys/list.ts'
import agentsKeysPause from './agents/keys/pause.ts'
import agentsKeysRemove from './agents/keys/remove.ts'
import agentsKeysTree from './agents/keys/tree.ts'
import agentsKeysUpdate from './agents/keys/update.ts'
import agentsKeysUsage from './agents/keys/usage.ts'
import agentsPause from './agents/pause.ts'
import agentsPolicyGet from './agents/policy/get.ts'
import agentsPolicySet from './agents/policy/set.ts'
import agentsRegistrationsGet from './agents/registrations/get.ts'
import agentsRegistrationsOutcome from './agents/registrations/outcome.ts'
import agentsRegistrationsReject from './agents/registrations/reject.ts'
import agentsRegistrationsStart from './agents/registrations/start.ts'
import agentsRules from './agents/rules.ts'
import approvalsDecide from './approvals/decide.ts'
import approvalsGet from './approvals/get.ts'
import approvalsList from './approvals/list.ts'
import approvalsRequest from './approvals/request.ts'
import approvalsWithdraw from './approvals/withdraw.ts'
import authDevicesAllow from './auth/devices/allow.ts'
import authDevicesGet from './auth/devices/get.ts'
import authDevicesOutcome from './auth/devices/outcome.ts'
import authDevicesReject from './auth/devices/reject.ts'
import authDevicesStart from './auth/devices/start.ts'
import authGuest from './auth/guest.ts'
import authIdentityProvider from './auth/identity-provider.ts'
import authLogout from './auth/logout.ts'
import authOtpStart from './auth/otp/start.ts'
import authOtpVerify from './auth/otp/verify.ts'
import authProfile from './auth/profile.ts'
import authRecoveryComplete from './auth/recovery/complete.ts'
import authRecoveryStart from './auth/recovery/start.ts'
import authSession from './auth/session.ts'
import authSessionsList from './auth/sessions/list.ts'
import authSessionsRevoke from './auth/sessions/revoke.ts'
import authWebauthn from './auth/webauthn.ts'
import bankingCreate from './banking/create.ts'
import bankingCustomerGet from './banking/customer/get.ts'
import bankingCustomerStart from './banking/customer/start.ts'
import bankingList from './banking/list.ts'
import bankingPayoutsCreate from './banking/payouts/create.ts'
import bankingPayoutsGet from './banking/payouts/get.ts'
import bankingPayoutsIntent from './banking/payouts/intent.ts'
import bankingPayoutsList from './banking/payouts/list.ts'
import bankingPayoutsQuote from './banking/payouts/quote.ts'
import bankingRecipientsCreate from './banking/recipients/create.ts'
import bankingRecipientsGet from './banking/recipients/get.ts'
import bankingRecipientsList from './banking/recipients/list.ts'
import bankingRecipientsRemove from './banking/recipients/remove.ts'
import cardsCancel from './cards/cancel.ts'
import cardsIssue from './cards/issue.ts'
import cardsList from './cards/list.ts'
import cardsReveal from './cards/reveal.ts'
import cardsSettings from './cards/settings.ts'
import cardsTransactions from './cards/transactions.ts'
import cardsUpdate from './cards/update.ts'
import channelsClose from './channels/close.ts'
import channelsList from './channels/list.ts'
import complianceBlockedAddressesGet from './compliance/blocked-addresses/get.ts'
import complianceBlockedAddressesSet from './compliance/blocked-addresses/set.ts'
import complianceKyc from './compliance/kyc.ts'
import compliancePersonalDataErase from './compliance/personal-data/erase.ts'
import complianceTravelRule from './compliance/travel-rule.ts'
import complianceTravelRulesGet from './compliance/travel-rules/get.ts'
import complianceVerificationPage from './compliance/verification-page.ts'
import contactsCreate from './contacts/create.ts'
import contactsList from './contacts/list.ts'
import contactsRemove from './contacts/remove.ts'
import contactsUpdate from './contacts/update.ts'
import context from './context.ts'
import developerKeysCreate from './developer/keys/create.ts'
import developerKeysList from './developer/keys/list.ts'
import developerKeysRevoke from './developer/keys/revoke.ts'
import developerKeysUpdate from './developer/keys/update.ts'
import docsFeedback from './docs/feedback.ts'
import eventsList from './events/list.ts'
import investingAccountGet from './investing/account/get.ts'
import investingAccountOpen from './investing/account/open.ts'
import investingOrder from './investing/order.ts'
import investingOrdersCancel from './investing/orders/cancel.ts'
import investingOrdersList from './investing/orders/list.ts'
import investingPortfolio from './investing/portfolio.ts'
import notificationsChannelsCreate from './notifications/channels/create.ts'
import notificationsChannelsList from './notifications/channels/list.ts'
import notificationsChannelsRemove from './notifications/channels/remove.ts'
import notificationsMessagesList from './notifications/messages/list.ts'
import notificationsSettingsGet from './notifications/settings/get.ts'
import notificationsSettingsUpdate from './notifications/settings/update.ts'
import notificationsSubscriptionsCreate from './notifications/subscriptions/create.ts'
import notificationsSubscriptionsList from './notifications/subscriptions/list.ts'
import notificationsSubscriptionsRemove from './notifications/subscriptions/remove.ts'
import peopleGet from './people/get.ts'
import peopleInvitationsAccept from './people/invitations/accept.ts'
import peopleInvitationsCancel from './people/invitations/cancel.ts'
import peopleInvitationsCreate from './people/invitations/create.ts'
import peopleList from './people/list.ts'
import peopleRemove from './people/remove.ts'
import peopleUpdate from './people/update.ts'
import policySimulate from './policy/simulate.ts'
import purchasesBuy from './purchases/buy.ts'
import purchasesEvidence from './purchases/evidence.ts'
import purchasesGet from './purchases/get.ts'
import purchasesIntent from './purchases/intent.ts'
import purchasesList from './purchases/list.ts'
import purchasesQuote from './purchases/quote.ts'
import purchasesResponse from './purchases/response.ts'
import railsControlsGet from './rails/controls/get.ts'
import railsControlsSet from './rails/controls/set.ts'
import railsList from './rails/list.ts'
import recourseGet from './recourse/get.ts'
import recourseList from './recourse/list.ts'
import recourseOpen from './recourse/open.ts'
import requestsCreate from './requests/create.ts'
import requestsGet from './requests/get.ts'
import requestsLink from './requests/link.ts'
import requestsList from './requests/list.ts'
import requestsRemove from './requests/remove.ts'
import sandboxAdmin from './sandbox/admin.ts'
import sandboxAuthorizations from './sandbox/authorizations.ts'
import sandboxBridge from './sandbox/bridge.ts'
import sandboxClock from './sandbox/clock.ts'
import sandboxCredentials from './sandbox/credentials.ts'
import sandboxDeposits from './sandbox/deposits.ts'
import sandboxFaucet from './sandbox/faucet.ts'
import sandboxOutbox from './sandbox/outbox.ts'
import sandboxPayouts from './sandbox/payouts.ts'
import sandboxPrices from './sandbox/prices.ts'
import sandboxRecourse from './sandbox/recourse.ts'
import sandboxRoutes from './sandbox/routes.ts'
import sandboxSellers from './sandbox/sellers.ts'
import schedulesCreate from './schedules/create.ts'
import schedulesGet from './schedules/get.ts'
import schedulesList from './schedules/list.ts'
import schedulesRemove from './schedules/remove.ts'
import schedulesUpdate from './schedules/update.ts'
import securityJournalList from './security/journal/list.ts'
import securityLock from './security/lock.ts'
import securityMfa from './security/mfa.ts'
import securityPasskeysList from './security/passkeys/list.ts'
import securityPasskeysRemove from './security/passkeys/remove.ts'
import sellersFind from './sellers/find.ts'
import statementsGet from './statements/get.ts'
import swapsExecute from './swaps/execute.ts'
import swapsOrdersGet from './swaps/orders/get.ts'
import swapsOrdersIntent from './swaps/orders/intent.ts'
import swapsOrdersList from './swaps/orders/list.ts'
import swapsQuote from './swaps/quote.ts'
import transfersGasless from './transfers/gasless.ts'
import walletsAllowancesIntent from './wallets/allowances/intent.ts'
import walletsAllowancesList from './wallets/allowances/list.ts'
import walletsAllowancesSet from './wallets/allowances/set.ts'
import walletsGet from './wallets/get.ts'
import walletsSignersCreate from './wallets/signers/create.ts'
import walletsSignersList from './wallets/signers/list.ts'
import walletsTransfer from './wallets/transfer.ts'
import walletsTransferIntent from './wallets/transfer-intent.ts'
import walletsTransfersGet from './wallets/transfers/get.ts'
import walletsTransfersList from './wallets/transfers/list.ts'
import webhookEndpointsCreate from './webhook-endpoints/create.ts'
import webhookEndpointsDeliveriesList from './webhook-endpoints/deliveries/list.ts'
import webhookEndpointsDeliveriesRetry from './webhook-endpoints/deliveries/retry.ts'
import webhookEndpointsGet from './webhook-endpoints/get.ts'
import webhookEndpointsList from './webhook-endpoints/list.ts'
import webhookEndpointsRemove from './webhook-endpoints/remove.ts'
import webhookEndpointsRotate from './webhook-endpoints/rotate.ts'
import webhookEndpointsTest from './webhook-endpoints/test.ts'
import webhookEndpointsUpdate from './webhook-endpoints/update.ts'
import x402Fx from './x402/fx.ts'
import x402PaymentsGet from './x402/payments/get.ts'

export const tools: readonly Tool[] = [
  activityList,
  adminAccountsList,
  adminAccountsLock,
  adminAccountsUnlock,
  adminAlarmsList,
  adminAlarmsResolve,
  adminDebtsList,
  adminDriftList,
  adminFigures,
  adminKycDecide,
  adminKycList,
  adminReviewsDecide,
  adminReviewsList,
  adminTravelRulesDecide,
  adminTravelRulesList,
  agentsDecisions,
  agentsDelegate,
  agentsDelegationsList,
  agentsDelegationsRevoke,
  agentsKeysChallenge,
  agentsKeysCreate,
  agentsKeysGet,
  agentsKeysList,
  agentsKeysPause,
  agentsKeysRemove,
  agentsKeysTree,
  agentsKeysUpdate,
  agentsKeysUsage,
  agentsPause,
  agentsPolicyGet,
  agentsPolicySet,
  agentsRegistrationsGet,
  agentsRegistrationsOutcome,
  agentsRegistrationsReject,
  agentsRegistrationsStart,
  agentsRules,
  approvalsDecide,
  approvalsGet,
  approvalsList,
  approvalsRequest,
  approvalsWithdraw,
  authDevicesAllow,
  authDevicesGet,
  authDevicesOutcome,
  authDevicesReject,
  authDevicesStart,
  authGuest,
  authIdentityProvider,
  authLogout,
  authOtpStart,
  authOtpVerify,
  authProfile,
  authRecoveryComplete,
  authRecoveryStart,
  authSession,
  authSessionsList,
  authSessionsRevoke,
  authWebauthn,
  bankingCreate,
  bankingCustomerGet,
  bankingCustomerStart,
  bankingList,
  bankingPayoutsCreate,
  bankingPayoutsGet,
  bankingPayoutsIntent,
  bankingPayoutsList,
  bankingPayoutsQuote,
  bankingRecipientsCreate,
  bankingRecipientsGet,
  bankingRecipientsList,
  bankingRecipientsRemove,
  cardsCancel,
  cardsIssue,
  cardsList,
  cardsReveal,
  cardsSettings,
  cardsTransactions,
  cardsUpdate,
  channelsClose,
  channelsList,
  complianceBlockedAddressesGet,
  complianceBlockedAddressesSet,
  complianceKyc,
  compliancePersonalDataErase,
  complianceTravelRule,
  complianceTravelRulesGet,
  complianceVerificationPage,
  contactsCreate,
  contactsList,
  contactsRemove,
  contactsUpdate,
  context,
  developerKeysCreate,
  developerKeysList,
  developerKeysRevoke,
  developerKeysUpdate,
  docsFeedback,
  eventsList,
  investingAccountGet,
  investingAccountOpen,
  investingOrder,
  investingOrdersCancel,
  investingOrdersList,
  investingPortfolio,
  notificationsChannelsCreate,
  notificationsChannelsList,
  notificationsChannelsRemove,
  notificationsMessagesList,
  notificationsSettingsGet,
  notificationsSettingsUpdate,
  notificationsSubscriptionsCreate,
  notificationsSubscriptionsList,
  notificationsSubscriptionsRemove,
  peopleGet,
  peopleInvitationsAccept,
  peopleInvitationsCancel,
  peopleInvitationsCreate,
  peopleList,
  peopleRemove,
  peopleUpdate,
  policySimulate,
  purchasesBuy,
  purchasesEvidence,
  purchasesGet,
  purchasesIntent,
  purchasesList,
  purchasesQuote,
  purchasesResponse,
  railsControlsGet,
  railsControlsSet,
  railsList,
  recourseGet,
  recourseList,
  recourseOpen,
  requestsCreate,
  requestsGet,
  requestsLink,
  requestsList,
  requestsRemove,
  sandboxAdmin,
  sandboxAuthorizations,
  sandboxBridge,
  sandboxClock,
  sandboxCredentials,
  sandboxDeposits,
  sandboxFaucet,
  sandboxOutbox,
  sandboxPayouts,
  sandboxPrices,
  sandboxRecourse,
  sandboxRoutes,
  sandboxSellers,
  schedulesCreate,
  schedulesGet,
  schedulesList,
  schedulesRemove,
  schedulesUpdate,
  securityJournalList,
  securityLock,
  securityMfa,
  securityPasskeysList,
  securityPasskeysRemove,
  transfersGasless,
  walletsAllowancesIntent,
  walletsAllowancesList,
  walletsAllowancesSet,
  sellersFind,
  statementsGet,
  swapsQuote,
  swapsExecute,
  swapsOrdersIntent,
  swapsOrdersGet,
  swapsOrdersList,
  walletsGet,
  walletsSignersCreate,
  walletsSignersList,
  walletsTransfer,
  walletsTransferIntent,
  walletsTransfersGet,
  walletsTransfersList,
  webhookEndpointsCreate,
  webhookEndpointsDeliveriesList,
  webhookEndpointsDeliveriesRetry,
  webhookEndpointsGet,
  webhookEndpointsList,
  webhookEndpointsRemove,
  webhookEndpointsRotate,
  webhookEndpointsTest,
  webhookEndpointsUpdate,
  x402Fx,
  x402PaymentsGet,
]
