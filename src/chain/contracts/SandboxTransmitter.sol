// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IMessageHandlerV2 {
    function handleReceiveFinalizedMessage(
        uint32 sourceDomain,
        bytes32 sender,
        uint32 finalityThresholdExecuted,
        bytes calldata messageBody
    ) external returns (bool);

    function handleReceiveUnfinalizedMessage(
        uint32 sourceDomain,
        bytes32 sender,
        uint32 finalityThresholdExecuted,
        bytes calldata messageBody
    ) external returns (bool);
}

/// @notice Stand-in for Circle's MessageTransmitterV2 on local chains: its functions, events and message format, with one attester.
contract SandboxTransmitter {
    /// @dev Its private key is keccak256 of `bursar sandbox attester`.
    address public constant ATTESTER = 0xE899d92e0182e3b5De2D3a9fa80E2201be17C382;
    uint32 public constant version = 1;
    uint32 private constant FINALIZED = 2000;
    uint256 private constant BODY = 148;

    mapping(bytes32 nonce => uint256 isUsed) public usedNonces;

    event MessageSent(bytes message);
    event MessageReceived(
        address indexed caller,
        uint32 sourceDomain,
        bytes32 indexed nonce,
        bytes32 sender,
        uint32 indexed finalityThresholdExecuted,
        bytes messageBody
    );

    /// @notice Circle's number of this chain.
    function localDomain() public view returns (uint32) {
        if (block.chainid == 84532) return 6;
        require(block.chainid == 421614, "Unknown chain");
        return 3;
    }

    /// @notice Emits a message. Its nonce and the finality that was reached are the attester's to fill in.
    function sendMessage(
        uint32 destinationDomain,
        bytes32 recipient,
        bytes32 destinationCaller,
        uint32 minFinalityThreshold,
        bytes calldata messageBody
    ) external {
        require(destinationDomain != localDomain(), "Domain is local domain");
        emit MessageSent(
            abi.encodePacked(
                version,
                localDomain(),
                destinationDomain,
                bytes32(0),
                bytes32(uint256(uint160(msg.sender))),
                recipient,
                destinationCaller,
                minFinalityThreshold,
                uint32(0),
                messageBody
            )
        );
    }

    /// @notice Delivers an attested message to its recipient, once.
    function receiveMessage(bytes calldata message, bytes calldata attestation) external returns (bool) {
        require(attestation.length == 65, "Invalid attestation length");
        bytes32 digest = keccak256(message);
        require(
            ecrecover(digest, uint8(attestation[64]), bytes32(attestation[:32]), bytes32(attestation[32:64])) == ATTESTER,
            "Invalid signature: not attester"
        );
        require(message.length >= BODY, "Invalid message length");
        require(uint32(bytes4(message[0:4])) == version, "Invalid message version");
        require(uint32(bytes4(message[8:12])) == localDomain(), "Invalid destination domain");
        bytes32 caller = bytes32(message[108:140]);
        require(caller == bytes32(0) || caller == bytes32(uint256(uint160(msg.sender))), "Invalid caller for message");
        bytes32 nonce = bytes32(message[12:44]);
        require(usedNonces[nonce] == 0, "Nonce already used");
        usedNonces[nonce] = 1;
        _deliver(message, nonce);
        return true;
    }

    function _deliver(bytes calldata message, bytes32 nonce) private {
        uint32 source = uint32(bytes4(message[4:8]));
        bytes32 sender = bytes32(message[44:76]);
        uint32 finality = uint32(bytes4(message[144:148]));
        bytes calldata body = message[BODY:];
        IMessageHandlerV2 recipient = IMessageHandlerV2(address(uint160(uint256(bytes32(message[76:108])))));
        bool isHandled = finality < FINALIZED
            ? recipient.handleReceiveUnfinalizedMessage(source, sender, finality, body)
            : recipient.handleReceiveFinalizedMessage(source, sender, finality, body);
        require(isHandled, "Message handling failed");
        emit MessageReceived(msg.sender, source, nonce, sender, finality, body);
    }
}
